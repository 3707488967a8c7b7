// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse++
// A reference into a managed object.
#include "marks.h"
struct node { int key; };
class list {
  public:
    // CHECK: error:
    int& first() const { return head_->key; }
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
int& use(const list& l) { return l.first(); }
