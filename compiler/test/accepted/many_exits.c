// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
int classify(const struct list* l, int key) {
    const struct node* n = l->head;
again:
    if (!n) return 0;
    switch (n->key - key) {
    case 0: return 1;
    case 1: return 2;
    default: break;
    }
    n = n->next;
    goto again;
}
