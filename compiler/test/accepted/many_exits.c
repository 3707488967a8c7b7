// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
int classify(const struct list* l, int key) {
    const struct node* n = l->head;
again:
    if (!n) return 0;
    switch (n->key - key) {
    case 0: return 1;
    case 1: return 2;
    default: break;
    }
    n = n->next;
    goto again;
}

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct list all;
static void push(int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = all.head;
    all.head = n;
}
int main(void) {
    for (int key = 0; key < 40; key += 4) push(key);
    printf("%d %d %d\n", classify(&all, 8), classify(&all, 7), classify(&all, 6));
}
#endif
