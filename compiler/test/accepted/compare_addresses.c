// SPDX-License-Identifier: MIT
// RUN: %accept
// Comparing addresses of one operation.
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
int same_first(const struct list* a, const struct list* b) { return a->head && a->head == b->head; }

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct list a, b;
static void push(struct list* l, int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = l->head;
    l->head = n;
}
int main(void) {
    for (int key = 0; key < 10; ++key) push(&a, key), push(&b, key);
    printf("%d %d\n", same_first(&a, &a), same_first(&a, &b));
}
#endif
