// SPDX-License-Identifier: MIT
// RUN: %accept
// Comparing addresses of one operation.
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
int same_first(const struct list* a, const struct list* b) { return a->head && a->head == b->head; }
