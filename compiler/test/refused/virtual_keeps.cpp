// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse++
#include "marks.h"
struct node { int key; };
struct listener {
    virtual ~listener() = default;
    virtual void told(const node* n) = 0;
};
struct last : listener {
    // CHECK: virtual_keeps.cpp:[[@LINE+1]]:{{.*}}error: obase: the address of a managed object is kept
    void told(const node* n) override { last_ = n; }
    const node* last_ = nullptr;
};
class list {
  public:
    void tell(listener& who) { who.told(head_); }
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
void use(list& l) {
    last k;
    l.tell(k);
}
