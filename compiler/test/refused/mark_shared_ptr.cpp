// SPDX-License-Identifier: MIT
// RUN: %refuse++
// A shared object has several owners, and its control block knows its address.
#include "marks.h"
#include <memory>
struct node {
    // CHECK: error: 'node::next' of type {{.*}} is marked{{.*}}[obase:mark-type]
    std::shared_ptr<node> next OBASE_GUIDED;
};
bool use(const node& n) { return n.next != nullptr; }
