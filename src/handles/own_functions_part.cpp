// SPDX-License-Identifier: MIT
//
// A shared library of system_calls_test, with a function whose name is one of the C library's and whose arguments are not.
extern "C" {
__attribute__((visibility("default"))) double eaccess(double one, long other, double third) {
    return one * 1000 + static_cast<double>(other) * 100 + third;
}
// By its name, which is found in the program first.
__attribute__((visibility("default"))) double own_function_of_a_library(double one, long other,
                                                                        double third) {
    return eaccess(one, other, third);
}
}
