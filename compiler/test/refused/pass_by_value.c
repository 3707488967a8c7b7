// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
// CHECK: error: 'node' with the marked field 'node::next' is passed by value{{.*}}[obase:struct-copy]
int key_of(struct node n) { return n.key; }
