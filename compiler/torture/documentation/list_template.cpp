// SPDX-License-Identifier: MIT
//
// right: a list as a class template, used with two types.
#include "torture.h"
template <typename T>
class list {
  public:
    ~list() {
        while (head_ != nullptr) pop();
    }
    void push(const T& value) { head_ = new node{value, head_}; }
    void pop() {
        node* gone = head_;
        head_ = gone->next;
        delete gone;
    }
    T sum() const {
        T s{};
        for (const node* n = head_; n != nullptr; n = n->next) s += n->value;
        return s;
    }

  private:
    struct node {
        T value;
        node* next OBASE_GUIDED;
    };
    node* head_ OBASE_GUIDED = nullptr;
};
int main() {
    list<int> i;
    list<double> d;
    for (int k = 0; k < 100; ++k) {
        i.push(k);
        d.push(k / 2.0);
    }
    settle();
    std::printf("%d %g\n", i.sum(), d.sum());
    for (int k = 0; k < 50; ++k) i.pop();
    settle();
    std::printf("%d %g\n", i.sum(), d.sum());
}
