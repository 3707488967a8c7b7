// SPDX-License-Identifier: MIT
// RUN: %accept
// The offset of a field that is not marked.
#include "marks.h"
struct node { struct node* next OBASE_GUIDED; int key; };
size_t place_of_key(void) { return offsetof(struct node, key); }
