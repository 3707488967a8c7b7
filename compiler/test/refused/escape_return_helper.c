// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
// Through a function of its own.
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
static struct node* find(struct list* l, int key) {
    struct node* n = l->head;
    while (n && n->key != key) n = n->next;
    return n;
}
// CHECK: error:
struct node* get(struct list* l, int key) { return find(l, key); }
