// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { int key; };
struct list { struct node* head OBASE_GUIDED; };
// CHECK: error: 'first' gives the slot 'list::head' to a caller outside of the operation [obase:slot-escape]
struct node** first(struct list* l) { return &l->head; }
