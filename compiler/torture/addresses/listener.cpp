// SPDX-License-Identifier: MIT
//
// refused: An object has one owner
// A virtual method of the unit keeps what it is told of.
#include "torture.h"
struct node {
    int key;
};
struct listener {
    virtual ~listener() = default;
    virtual void told(const node* n) = 0;
};
struct last : listener {
    void told(const node* n) override { last_ = n; }
    const node* last_ = nullptr;
};
class list {
  public:
    void tell(listener& who) { who.told(head_); }

  private:
    node* head_ OBASE_GUIDED = nullptr;
};
int main() {
    list l;
    last k;
    l.tell(k);
}
