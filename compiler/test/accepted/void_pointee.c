// SPDX-License-Identifier: MIT
// RUN: %accept
// Accepted on trust: the visibility file says so.
#include "marks.h"
struct node { void* value OBASE_GUIDED; };
int has_value(const struct node* n) { return n->value != 0; }

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct node all;
static void set(void) { all.value = calloc(1, 100); }
int main(void) {
    int before = has_value(&all);
    set();
    printf("%d %d\n", before, has_value(&all));
}
#endif
