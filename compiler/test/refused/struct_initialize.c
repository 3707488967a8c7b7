// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
int peek(const struct node* n) {
    // CHECK: error: 'node' with the marked field 'node::next' is copied as a whole{{.*}}[obase:struct-copy]
    struct node copy = *n;
    return copy.key;
}
