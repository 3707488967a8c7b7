// SPDX-License-Identifier: MIT
//
// refused: address of a managed object
// An iterator is given to callers, who keep it.
#include "torture.h"
struct node {
    int value;
    node* next OBASE_GUIDED;
};
class bag {
  public:
    class iterator {
      public:
        explicit iterator(node* at) : at_(at) {}
        int operator*() const { return at_->value; }

      private:
        node* at_;
    };
    iterator begin() const { return iterator(head_); }

  private:
    node* head_ OBASE_GUIDED = nullptr;
};
int main() {
    bag b;
    auto i = b.begin();
    (void)i;
}
