// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse++
#include "marks.h"
#include <functional>
struct node { int key; };
struct list { node* head OBASE_GUIDED; };
std::function<int()> later(const list& l) {
    node* n = l.head;
    // CHECK: error:
    return [n] { return n->key; };
}
