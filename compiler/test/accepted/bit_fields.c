// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
struct node { unsigned red : 1; unsigned depth : 31; struct node* next OBASE_GUIDED; };
unsigned depth(const struct node* n) { return n->next ? n->next->depth : n->depth; }
