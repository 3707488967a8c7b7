// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct node {
    // CHECK: error: 'node::parent' of type 'node &' is marked{{.*}}[obase:mark-type]
    node& parent OBASE_GUIDED;
};
int use(const node& n) { return &n.parent == &n; }
