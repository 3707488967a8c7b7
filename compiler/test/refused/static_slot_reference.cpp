// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct node { int key; };
struct list { node* head OBASE_GUIDED; };
list all;
// CHECK: error: 'current' keeps the address of the slot 'list::head' beyond every operation [obase:slot-escape]
node*& current = all.head;
