// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
#include <stdatomic.h>
struct node { int key; };
struct box { _Atomic(struct node*) held OBASE_GUIDED; };
int box_key(struct box* b) {
    struct node* n = atomic_load_explicit(&b->held, memory_order_acquire);
    return n ? n->key : 0;
}
int box_put(struct box* b, struct node* n) {
    struct node* expected = 0;
    return atomic_compare_exchange_strong(&b->held, &expected, n);
}

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct box all;
static int fill(int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    if (box_put(&all, n)) return 1;
    free(n);
    return 0;
}
int main(void) {
    printf("%d %d\n", fill(5), fill(6));
    printf("%d\n", box_key(&all));
}
#endif
