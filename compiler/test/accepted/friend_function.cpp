// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
class list {
  public:
    friend int length(const list& l) {
        int count = 0;
        for (node* n = l.head_; n != nullptr; n = n->next) ++count;
        return count;
    }
    friend bool operator==(const list& a, const list& b) { return length(a) == length(b); }
  private:
    struct node { int key; node* next OBASE_GUIDED; };
    node* head_ OBASE_GUIDED = nullptr;
};
bool use(const list& a, const list& b) { return a == b; }
