// SPDX-License-Identifier: MIT
// RUN: %accept++
// The programmer knows better: no operation, although it takes a node.
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
OBASE_OUTSIDE int key_of(const node& n) { return n.key; }
int use(const node& n) { return key_of(n); }
