// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse++
// What the closure is called by is an operation, but its variables outlive that.
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
class list {
  public:
    template <class Use> void each(Use&& use) const {
        for (const node* n = head_; n != nullptr; n = n->next) use(n);
    }
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
bool any(const list& l) {
    const node* last = nullptr;
    // CHECK: [[#@LINE+1]]:{{.*}}error: {{.*}}kept in memory that outlives the operation
    l.each([&last](const node* n) { last = n; });
    return last != nullptr;
}
