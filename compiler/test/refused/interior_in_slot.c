// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
// A slot must hold the address of an object's first byte.
#include "marks.h"
struct value { int a, b; };
struct node { struct value v; struct node* next OBASE_GUIDED; int* chosen OBASE_GUIDED; };
// CHECK: error:
void choose(struct node* n) { n->chosen = &n->next->v.b; }
