// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node {
    // CHECK: error: 'node::compare' of type {{.*}} is marked{{.*}}[obase:mark-type]
    int (*compare)(int, int) OBASE_GUIDED;
};
int use(const struct node* n) { return n->compare(1, 2); }
