// SPDX-License-Identifier: MIT
// RUN: %accept
// The address of a slot, in a variable of the operation.
#include "marks.h"
#include <stdlib.h>
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
int list_remove(struct list* l, int key) {
    for (struct node** link = &l->head; *link; link = &(*link)->next)
        if ((*link)->key == key) {
            struct node* n = *link;
            *link = n->next;
            free(n);
            return 1;
        }
    return 0;
}

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
static struct list all;
static void push(int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = all.head;
    all.head = n;
}
int main(void) {
    int removed = 0;
    for (int key = 0; key < 20; ++key) push(key);
    for (int key = -5; key < 25; key += 2) removed += list_remove(&all, key);
    printf("%d\n", removed);
}
#endif
