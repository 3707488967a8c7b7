// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { int key; };
struct list { struct node* head OBASE_GUIDED; };
void fill(struct node** where);
void load(struct list* l) {
    // CHECK: error: the slot 'list::head' is given to 'fill', whose body is not here [obase:slot-escape]
    fill(&l->head);
}
