// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
#include "marks.h"
struct node { int key; };
struct list { struct node* head OBASE_GUIDED; };
struct node* last_used;
// CHECK: error:
void use(struct list* l) { last_used = l->head; }
