// SPDX-License-Identifier: MIT
//
// right: a function object is called with each object.
#include "torture.h"
class list {
    struct node {
        int key;
        node* next OBASE_GUIDED;
    };
    node* head_ OBASE_GUIDED = nullptr;

  public:
    void push(int key) { head_ = new node{key, head_}; }
    template <typename F>
    void each(F f) {
        for (node* n = head_; n; n = n->next) f(n->key);
    }
};
int main() {
    list l;
    for (int i = 0; i < 50; ++i) l.push(i);
    settle();
    l.each([](int& key) { key *= 2; });
    settle();
    long sum = 0;
    l.each([&](int key) { sum += key; });
    std::printf("%ld\n", sum);
}
