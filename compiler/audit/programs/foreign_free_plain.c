/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

/* The call is not the last thing, or it would be a jump from the caller. */
void destroy(void* p) {
    free(p);
    __asm__ volatile("");
}
void* grow(void* p, size_t bytes) { return realloc(p, bytes); }
