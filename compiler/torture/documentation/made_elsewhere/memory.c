// SPDX-License-Identifier: MIT
//
// See made_elsewhere.c.
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
void* checked_alloc(size_t bytes) {
    void* memory = malloc(bytes);
    if (memory == NULL) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    return memory;
}
void checked_free(void* memory) { free(memory); }
