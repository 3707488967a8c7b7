/* SPDX-License-Identifier: MIT
 *
 * A program that has asked for a symbol in vain before it frees: what dlsym keeps of that is freed when the program's free
 * looks for malloc's.
 *
 * STATUS: 0
 * EXPECT: 0 errors
 */
#define _GNU_SOURCE
#include "list.h"

#include <dlfcn.h>

/* Before the audit begins, or anything else of obase. */
__attribute__((constructor(101))) static void ask_in_vain(void) {
    if (dlsym(RTLD_DEFAULT, "there_is_no_such_function") != NULL) abort();
    free(malloc(10));
}

int main(void) {
    fill();
    printf("%ld\n", sum(&all));
    return 0;
}
