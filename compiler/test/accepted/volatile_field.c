// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
struct node { int key; };
struct box { struct node* volatile held OBASE_GUIDED; };
int empty(const struct box* b) { return b->held == 0; }
