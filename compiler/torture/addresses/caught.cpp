// SPDX-License-Identifier: MIT
//
// refused: outlives the operation
// An address leaves the operation in an exception.
#include "torture.h"
struct node {
    int key;
};
class list {
  public:
    void check() {
        if (head_ && head_->key < 0) throw head_;
    }

  private:
    node* head_ OBASE_GUIDED = nullptr;
};
int main() {
    list l;
    try {
        l.check();
    } catch (const node* n) {
        std::printf("%d\n", n->key);
    }
}
