// SPDX-License-Identifier: MIT
// driver: --no-handles-system-calls
// The C library's functions are the C library's.
#include <stdio.h>
extern const char obase_handles_system_calls __attribute__((weak));
int main(void) {
    printf("%d\n", &obase_handles_system_calls != NULL); //> 0
}
