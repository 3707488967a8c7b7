// SPDX-License-Identifier: MIT
// REQUIRES: passes
// XFAIL: *
// RUN: %refuse
#include "marks.h"
struct node { int key; };
struct list { struct node* head OBASE_GUIDED; };
void observe(struct node* n);
// CHECK: error:
void each(struct list* l) { observe(l->head); }
