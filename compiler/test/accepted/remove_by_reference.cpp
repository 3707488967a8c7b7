// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
class list {
  public:
    bool pop() {
        node*& first = head_;
        if (first == nullptr) return false;
        node* n = first;
        first = n->next;
        delete n;
        return true;
    }
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
bool use(list& l) { return l.pop(); }
