// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
#include <mutex>
struct node {
    std::mutex lock;
    int key;
    // CHECK: error: 'node::next' is marked{{.*}}a waiting thread keeps its address [obase:immovable]
    node* next OBASE_GUIDED;
};
bool last(const node& n) { return n.next == nullptr; }
