// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse++
#include "marks.h"
struct node { int key; };
class list {
  public:
    // CHECK: error:
    node* first() const { return head_; }
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
node* use(const list& l) { return l.first(); }
