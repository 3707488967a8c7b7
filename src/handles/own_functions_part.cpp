// SPDX-License-Identifier: MIT
//
// A shared library of system_calls_test, with a function whose name is one of the C library's and whose arguments are not.
#include <initializer_list>

extern "C" {
__attribute__((visibility("default"))) double eaccess(double first, long a, long b, long c, long d,
                                                      long e, long f, long g, long h) {
    double digits = 0;
    for (const long each : {a, b, c, d, e, f, g, h})
        digits = digits * 10 + static_cast<double>(each);
    return digits + first;
}
// By its name, which is found in the program first.
__attribute__((visibility("default"))) double own_function_of_a_library(double first,
                                                                        const long (&of)[8]) {
    return eaccess(first, of[0], of[1], of[2], of[3], of[4], of[5], of[6], of[7]);
}
__attribute__((visibility("default"))) double own_function_of_a_library_at_its_start;
__attribute__((constructor)) static void call_at_start() {
    own_function_of_a_library_at_its_start =
        own_function_of_a_library(.5, {8, 7, 6, 5, 4, 3, 2, 1});
}
}
