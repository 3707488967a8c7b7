// SPDX-License-Identifier: MIT
//
// A stranger's C program.
#include <obase/version.h>

#include <stdio.h>

int main(void) {
    printf("obase %s, %s\n", obase_version(), obase_build());
    return 0;
}
