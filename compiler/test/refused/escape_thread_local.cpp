// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse++
#include "marks.h"
struct node { int key; };
struct list { node* head OBASE_GUIDED; };
thread_local node* finger;
// CHECK: error:
void use(list& l) { finger = l.head; }
