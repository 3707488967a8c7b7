// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
struct node* of_link(void* link) {
    // CHECK: error: the offset of the marked field 'node::next' makes accesses that the passes cannot see [obase:offsetof]
    return (struct node*)((char*)link - offsetof(struct node, next));
}
