/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>

uintptr_t* volatile cache;
void keep_it(void* p) {
    cache = malloc(64);
    cache[3] = (uintptr_t)p | 1;
}
