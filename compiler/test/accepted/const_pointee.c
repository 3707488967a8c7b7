// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
struct value { int number; };
struct node { const struct value* v OBASE_GUIDED; };
int number(const struct node* n) { return n->v ? n->v->number : 0; }

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct node all;
static void set(int to) {
    struct value* v = malloc(sizeof *v);
    v->number = to;
    all.v = v;
}
int main(void) {
    int none = number(&all);
    set(7);
    printf("%d %d\n", none, number(&all));
}
#endif
