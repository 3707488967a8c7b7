// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { int key; };
// CHECK: error: a variable is marked, but only a field of a struct can be a slot [obase:mark-place]
struct node* head OBASE_GUIDED;
int empty(void) { return head == 0; }
