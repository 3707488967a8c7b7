// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse++
// The closure's caller is no part of an operation: it has a scope of its own, and returns from it.
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
template <class Take> bool finds(Take&& take) { return take() != nullptr; }
class list {
  public:
    bool first() const {
        // CHECK: [[#@LINE+1]]:{{.*}}error: {{.*}}an operation returns the address of a managed object
        return finds([this] { return head_; });
    }
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
bool use(const list& l) { return l.first(); }
