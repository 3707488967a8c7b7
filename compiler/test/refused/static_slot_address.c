// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { int key; };
struct list { struct node* head OBASE_GUIDED; };
static struct list all;
// CHECK: error: 'current' keeps the address of the slot 'list::head' beyond every operation [obase:slot-escape]
static struct node** current = &all.head;
int watched(void) { return *current != 0; }
