// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
struct node { int key; };
struct box { struct node* volatile held OBASE_GUIDED; };
int empty(const struct box* b) { return b->held == 0; }

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct box all;
static void set(int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    all.held = n;
}
static int key(void) { return all.held->key; }
int main(void) {
    int before = empty(&all);
    set(3);
    printf("%d %d %d\n", before, empty(&all), key());
}
#endif
