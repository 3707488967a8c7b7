// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
class list {
    friend class printer;
    struct node { int key; node* next OBASE_GUIDED; };
    node* head_ OBASE_GUIDED = nullptr;
};
class printer {
  public:
    explicit printer(const list& l) : list_(l) {}
    int sum() const {
        int total = 0;
        for (list::node* n = list_.head_; n != nullptr; n = n->next) total += n->key;
        return total;
    }
  private:
    const list& list_;
};
int use(const list& l) { return printer(l).sum(); }
