// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
struct node { unsigned red : 1; unsigned depth : 31; struct node* next OBASE_GUIDED; };
unsigned depth(const struct node* n) { return n->next ? n->next->depth : n->depth; }

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct node first;
static void grow(unsigned to) {
    struct node* n = calloc(1, sizeof *n);
    n->red = 1;
    n->depth = to;
    n->next = first.next;
    first.next = n;
}
int main(void) {
    printf("%u\n", depth(&first));
    for (unsigned to = 1; to < 20; ++to) grow(to);
    printf("%u\n", depth(&first));
}
#endif
