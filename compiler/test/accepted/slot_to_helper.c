// SPDX-License-Identifier: MIT
// RUN: %accept
// A function of this file takes a slot's address.
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
static void unlink_first(struct node** link) {
    struct node* n = *link;
    *link = n->next;
    n->next = 0;
}
void list_drop(struct list* from, struct list* to) {
    struct node* n = from->head;
    if (!n) return;
    unlink_first(&from->head);
    n->next = to->head;
    to->head = n;
}

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct list from, to;
static void push(int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = from.head;
    from.head = n;
}
static int sum(const struct list* l) {
    int keys = 0;
    for (const struct node* n = l->head; n; n = n->next) keys += n->key;
    return keys;
}
int main(void) {
    for (int key = 0; key < 20; ++key) push(key);
    for (int i = 0; i < 7; ++i) list_drop(&from, &to);
    printf("%d %d\n", sum(&from), sum(&to));
}
#endif
