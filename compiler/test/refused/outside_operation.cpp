// SPDX-License-Identifier: MIT
// RUN: %refuse++
// A function that shall be no operation calls a private method, which has no scope of its own.
#include "marks.h"
struct node { int key; };
class list {
    friend bool check();
    bool empty() const { return head_ == nullptr; }
    node* head_ OBASE_GUIDED = nullptr;
};
list* all();
OBASE_OUTSIDE bool check() {
    // CHECK: error: 'list::empty' runs in the scope of its caller, but here it is called outside of any operation [obase:outside-operation]
    return all()->empty();
}
