// SPDX-License-Identifier: MIT
// No marked fields are known here.
#include "memory.h"
#include <stdlib.h>
#include <string.h>

static unsigned calls = 0;

void* my_malloc(size_t bytes) {
    if (bytes > 100000) return NULL;
    void* made = malloc(bytes);
    calls += made != NULL;
    return made;
}

char* my_copy(const char* text) {
    char* copy = my_malloc(strlen(text) + 1);
    return copy ? (strcpy(copy, text), copy) : NULL;
}

void my_free(void* memory) { free(memory); }
unsigned my_calls(void) { return calls; }

static char* own_copy(const char* text) { return my_copy(text); }
#ifndef ATC
_Static_assert(__LINE__ == 26, "lines have the numbers that they have in the source");
#endif
char* kept_copy(const char* text);
char* kept_copy(const char* text) { return own_copy(text); }
