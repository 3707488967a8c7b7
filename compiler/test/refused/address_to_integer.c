// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
// CHECK: error:
unsigned long bits(const struct node* n) { return (unsigned long)n->next; }
