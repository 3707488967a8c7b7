// SPDX-License-Identifier: MIT
// REQUIRES: passes
// XFAIL: *
// RUN: %refuse++
#include "marks.h"
#include <vector>
struct node { int key; node* next OBASE_GUIDED; };
struct list { node* head OBASE_GUIDED; };
void all(const list& l, std::vector<node*>& out) {
    // CHECK: error:
    for (node* n = l.head; n != nullptr; n = n->next) out.push_back(n);
}
