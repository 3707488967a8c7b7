// SPDX-License-Identifier: MIT
//
// See found_elsewhere.c and handed_out_elsewhere.c.
#include "list.h"
struct node* lookup(struct list* l, int key) {
    struct node* n = l->head;
    while (n && n->key != key) n = n->next;
    return n;
}
int find(struct list* l, int key, struct node** out) {
    *out = lookup(l, key);
    return *out != NULL;
}
void push(struct list* l, int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = l->head;
    l->head = n;
}
