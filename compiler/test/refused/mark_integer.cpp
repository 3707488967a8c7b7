// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct node {
    // CHECK: error: 'node::next' of type 'unsigned long' is marked, but only pointers to objects can be [obase:mark-type]
    unsigned long next OBASE_GUIDED;
};
unsigned long use(const node& n) { return n.next; }
