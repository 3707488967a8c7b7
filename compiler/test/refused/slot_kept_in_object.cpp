// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct node { int key; };
struct list { node* head OBASE_GUIDED; };
struct cursor { node** at; };
void begin(cursor* c, list* l) {
    // CHECK: error: the address of the slot 'list::head' is kept beyond the operation [obase:slot-escape]
    c->at = &l->head;
}
