// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node {
    int leaf;
    // CHECK: error: a union holds the marked field {{.*}}[obase:union]
    union {
        struct node* left OBASE_GUIDED;
        long value;
    };
};
long value(const struct node* n) { return n->value; }
