// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct node {
    node* self;
    int key;
    node() : self(this), key(0) {}
};
struct list {
    // CHECK: error: 'list::head' is marked{{.*}}'node::self' is set to an address within its own object [obase:immovable]
    node* head OBASE_GUIDED;
};
bool empty(const list& l) { return l.head == nullptr; }
