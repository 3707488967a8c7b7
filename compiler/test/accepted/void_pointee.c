// SPDX-License-Identifier: MIT
// RUN: %accept
// Accepted on trust: the visibility file says so.
#include "marks.h"
struct node { void* value OBASE_GUIDED; };
int has_value(const struct node* n) { return n->value != 0; }
