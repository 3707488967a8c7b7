// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
struct value { int number; };
struct node { const struct value* v OBASE_GUIDED; };
int number(const struct node* n) { return n->v ? n->v->number : 0; }
