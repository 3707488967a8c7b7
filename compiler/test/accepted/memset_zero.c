// SPDX-License-Identifier: MIT
// RUN: %accept
// Zeros are null in every slot.
#include "marks.h"
#include <stdlib.h>
#include <string.h>
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
void list_init(struct list* l) { memset(l, 0, sizeof *l); }
int list_push(struct list* l, int key) {
    struct node* n = malloc(sizeof *n);
    if (!n) return -1;
    memset(n, 0, sizeof *n);
    n->key = key;
    n->next = l->head;
    l->head = n;
    return 0;
}

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
static struct list all;
static int sum(void) {
    int keys = 0;
    for (const struct node* n = all.head; n; n = n->next) keys += n->key;
    return keys;
}
int main(void) {
    list_init(&all);
    for (int key = 0; key < 20; ++key) list_push(&all, key);
    printf("%d\n", sum());
}
#endif
