// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse++
// The library may call it at any time, so it is an operation of its own.
#include "marks.h"
#include <functional>
struct node { int key; node* next OBASE_GUIDED; };
class list {
  public:
    int first() const {
        // CHECK: [[#@LINE+1]]:{{.*}}error: {{.*}}an operation returns the address of a managed object
        const std::function<const node*()> at = [this] { return head_; };
        const node* n = at();
        return n == nullptr ? 0 : n->key;
    }
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
int use(const list& l) { return l.first(); }
