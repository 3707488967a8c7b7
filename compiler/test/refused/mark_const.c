// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node {
    // CHECK: error: 'node::next' is marked, but const: the word changes when its object moves [obase:mark-const]
    struct node* const next OBASE_GUIDED;
};
int last(const struct node* n) { return n->next == 0; }
