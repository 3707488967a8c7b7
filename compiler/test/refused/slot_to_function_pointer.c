// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { int key; };
struct list { struct node* head OBASE_GUIDED; };
void load(struct list* l, void (*fill)(struct node**)) {
    // CHECK: error: the slot 'list::head' is given to a function that is not known here [obase:slot-escape]
    fill(&l->head);
}
