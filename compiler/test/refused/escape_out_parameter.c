// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
#include "marks.h"
struct node { int key; };
struct list { struct node* head OBASE_GUIDED; };
// CHECK: error:
void first(struct list* l, struct node** out) { *out = l->head; }
