// SPDX-License-Identifier: MIT
//
// A stranger's C++ program.
#include <obase/version.hpp>

#include <cstdio>

int main() {
    std::printf("obase %s, %s\n", obase::version(), obase::build());
    return 0;
}
