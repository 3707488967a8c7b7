// SPDX-License-Identifier: MIT
// RUN: %accept
// For a while two fields hold the same address.
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
void list_reverse(struct list* l) {
    struct node* done = 0;
    while (l->head) {
        struct node* n = l->head;
        l->head = n->next;
        n->next = done;
        done = n;
    }
    l->head = done;
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
static int digits(void) {
    int number = 0;
    for (const struct node* n = all.head; n; n = n->next) number = 10 * number + n->key;
    return number;
}
int main(void) {
    for (int key = 1; key < 9; ++key) push(key);
    printf("%d\n", digits());
    list_reverse(&all);
    printf("%d\n", digits());
}
#endif
