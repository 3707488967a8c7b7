// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
// CHECK: error: {{.*}}the order of two managed objects by their addresses
int in_order(struct list* l) { return l->head < l->head->next; }
