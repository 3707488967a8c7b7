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
