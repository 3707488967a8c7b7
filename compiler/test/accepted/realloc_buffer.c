// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
#include <stdlib.h>
struct value { size_t size; char bytes[]; };
struct entry { struct value* v OBASE_GUIDED; };
int entry_make(struct entry* e) {
    struct value* v = malloc(sizeof *v);
    if (!v) return -1;
    v->size = 0;
    e->v = v;
    return 0;
}
int entry_grow(struct entry* e, size_t size) {
    struct value* v = realloc(e->v, sizeof *v + size);
    if (!v) return -1;
    v->size = size;
    e->v = v;
    return 0;
}

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
static struct entry all;
static size_t size(void) { return all.v->size; }
int main(void) {
    int wrong = entry_make(&all);
    for (size_t to = 1; to < 5000; to *= 2) wrong += entry_grow(&all, to);
    printf("%d %zu\n", wrong, size());
}
#endif
