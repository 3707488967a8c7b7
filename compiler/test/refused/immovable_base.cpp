// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
#include <unordered_map>
struct names { std::unordered_map<int, int> all; };
struct node : names { int key; };
struct list {
    // CHECK: error: 'list::head' is marked{{.*}}it points into itself [obase:immovable]
    node* head OBASE_GUIDED;
};
bool empty(const list& l) { return l.head == nullptr; }
