// SPDX-License-Identifier: MIT
// REQUIRES: passes
// XFAIL: *
// RUN: %refuse
// An unmarked field, as the back pointers of a doubly linked list.
#include "marks.h"
struct node { int key; struct node* prev; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
void push(struct list* l, struct node* n) {
    n->next = l->head;
    // CHECK: error:
    if (n->next) n->next->prev = n;
    l->head = n;
}
