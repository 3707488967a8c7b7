// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
template <class T> class list {
  public:
    void push(const T& value) {
        node* n = new node{value, nullptr};
        n->next = head_;
        head_ = n;
    }
    bool has(const T& value) const;
  private:
    struct node { T value; node* next OBASE_GUIDED; };
    node* head_ OBASE_GUIDED = nullptr;
};
template <class T> bool list<T>::has(const T& value) const {
    for (node* n = head_; n != nullptr; n = n->next)
        if (n->value == value) return true;
    return false;
}
template class list<long>;
int main() {
    list<int> l;
    l.push(1);
    return l.has(1) ? 0 : 1;
}
