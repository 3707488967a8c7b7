// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct __attribute__((packed)) node {
    int key;
    // CHECK: error: 'node::next' is marked, but may lie at an address that is no multiple of 8 [obase:mark-alignment]
    struct node* next OBASE_GUIDED;
};
int last(const struct node* n) { return n->next == 0; }
