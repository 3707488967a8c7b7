// SPDX-License-Identifier: MIT
// RUN: %refuse++
// One instance can be moved, the other cannot.
#include "marks.h"
#include <string>
template <class T> struct node {
    T value;
    // CHECK: error: {{.*}}next' is marked{{.*}}short strings point into themselves [obase:immovable]
    node* next OBASE_GUIDED;
};
bool last(const node<int>& n) { return n.next == nullptr; }
bool last(const node<std::string>& n) { return n.next == nullptr; }
