// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
class list {
  public:
    template <class F> void each(F&& f) const {
        for (node* n = head_; n != nullptr; n = n->next) f(n->key);
    }
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
int sum(const list& l) {
    int total = 0;
    l.each([&total](int key) { total += key; });
    return total;
}
