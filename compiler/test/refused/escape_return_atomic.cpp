// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse++
#include "marks.h"
#include <atomic>
struct node { int key; };
class stack {
  public:
    // CHECK: error:
    node* top() const { return top_.load(std::memory_order_acquire); }
  private:
    std::atomic<node*> top_ OBASE_GUIDED{nullptr};
};
node* use(const stack& s) { return s.top(); }
