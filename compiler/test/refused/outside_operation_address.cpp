// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct node { int key; };
class list {
  public:
    using test = bool (list::*)() const;
    // CHECK: error: 'list::empty_' runs in the scope of its caller, but here its address is taken [obase:outside-operation]
    static test emptiness() { return &list::empty_; }
  private:
    bool empty_() const { return head_ == nullptr; }
    node* head_ OBASE_GUIDED = nullptr;
};
list::test use() { return list::emptiness(); }
