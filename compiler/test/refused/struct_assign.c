// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
void copy(struct node* to, const struct node* from) {
    // CHECK: error: 'node' with the marked field 'node::next' is copied as a whole, so an object would have two owners [obase:struct-copy]
    *to = *from;
    // CHECK: note: assign field by field
}
