// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse++
#include "marks.h"
#include <vector>
struct node { int key; node* next OBASE_GUIDED; };
struct list { node* head OBASE_GUIDED; };
void all(const list& l, std::vector<node*>& out) {
    // In the library: where there is room, and where the vector grows.
    // CHECK: error: {{.*}}kept in memory that outlives the operation
    // CHECK: error: {{.*}}kept in memory that outlives the operation
    for (node* n = l.head; n != nullptr; n = n->next) out.push_back(n);
}
