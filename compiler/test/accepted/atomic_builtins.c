// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
int next_key(struct node* n) {
    struct node* next = __atomic_load_n(&n->next, __ATOMIC_ACQUIRE);
    return next ? next->key : 0;
}
void set_next(struct node* n, struct node* next) {
    __atomic_store_n(&n->next, next, __ATOMIC_RELEASE);
}
int link_after(struct node* n, struct node* added) {
    return __sync_bool_compare_and_swap(&n->next, (struct node*)0, added);
}

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct node first;
static int grow(int key) {
    struct node* n = calloc(1, sizeof *n);
    n->key = key;
    if (link_after(&first, n)) return 1;
    set_next(n, __atomic_exchange_n(&first.next, 0, __ATOMIC_ACQ_REL));
    return link_after(&first, n);
}
int main(void) {
    int linked = 0;
    for (int key = 1; key < 20; ++key) linked += grow(key);
    printf("%d %d\n", linked, next_key(&first));
}
#endif
