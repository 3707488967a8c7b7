// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
// A hash of the address changes when the object moves.
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
int slot_of[64];
// CHECK: error:
int lookup(const struct node* n) { return slot_of[(unsigned long)n->next % 64]; }
