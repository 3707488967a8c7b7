// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
#include <stdlib.h>
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
int list_push(struct list* l, int key) {
    struct node* n = malloc(sizeof *n);
    if (!n) return -1;
    n->key = key;
    n->next = l->head;
    l->head = n;
    return 0;
}
int list_has(const struct list* l, int key) {
    for (const struct node* n = l->head; n; n = n->next)
        if (n->key == key) return 1;
    return 0;
}
void list_clear(struct list* l) {
    while (l->head) {
        struct node* n = l->head;
        l->head = n->next;
        free(n);
    }
}

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
static struct list all;
int main(void) {
    int wrong = 0;
    for (int key = 0; key < 20; ++key) wrong += list_push(&all, key);
    printf("%d %d %d\n", wrong, list_has(&all, 7), list_has(&all, 30));
    list_clear(&all);
    printf("%d\n", list_has(&all, 7));
}
#endif
