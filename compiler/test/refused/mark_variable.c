// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { int key; };
// CHECK: error: 'head' is marked, but other files may use it, in which it is not [obase:mark-place]
struct node* head OBASE_GUIDED;
int empty(void) { return head == 0; }
