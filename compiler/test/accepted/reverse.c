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
