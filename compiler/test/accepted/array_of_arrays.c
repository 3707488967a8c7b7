// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
struct cell { int value; };
struct grid { struct cell* cells[8][8] OBASE_GUIDED; };
int grid_get(const struct grid* g, unsigned x, unsigned y) {
    const struct cell* c = g->cells[y & 7][x & 7];
    return c ? c->value : 0;
}

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct grid all;
static void set(unsigned x, unsigned y, int value) {
    struct cell* c = malloc(sizeof *c);
    c->value = value;
    all.cells[y & 7][x & 7] = c;
}
int main(void) {
    int sum = 0;
    for (unsigned i = 0; i < 8; ++i) set(i, i * 3, (int)i);
    for (unsigned i = 0; i < 64; ++i) sum += grid_get(&all, i % 8, i / 8);
    printf("%d\n", sum);
}
#endif
