// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
#include <stdlib.h>
#include <string.h>
struct item { struct item* next OBASE_GUIDED; unsigned length; char data[]; };
struct cache { struct item* first OBASE_GUIDED; };
int cache_put(struct cache* c, const char* data, unsigned length) {
    struct item* i = malloc(sizeof *i + length);
    if (!i) return -1;
    i->length = length;
    memcpy(i->data, data, length);
    i->next = c->first;
    c->first = i;
    return 0;
}
int cache_has(const struct cache* c, const char* data, unsigned length) {
    for (const struct item* i = c->first; i; i = i->next)
        if (i->length == length && memcmp(i->data, data, length) == 0) return 1;
    return 0;
}

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
static struct cache all;
int main(void) {
    int wrong = 0;
    for (int i = 0; i < 20; ++i) wrong += cache_put(&all, "some text", 9 - (unsigned)i % 5);
    printf("%d %d %d\n", wrong, cache_has(&all, "some t", 6), cache_has(&all, "none", 4));
}
#endif
