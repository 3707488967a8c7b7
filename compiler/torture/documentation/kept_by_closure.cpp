// SPDX-License-Identifier: MIT
//
// refused: returns the address of a managed object
// The function object keeps the address.
#include "torture.h"

#include <functional>
class list {
    struct node {
        int key;
        node* next OBASE_GUIDED;
    };
    node* head_ OBASE_GUIDED = nullptr;

  public:
    void push(int key) { head_ = new node{key, head_}; }
    std::function<int()> reader() {
        node* n = head_;
        return [n] { return n->key; };
    }
};
int main() {
    list l;
    l.push(4);
    auto read = l.reader();
    settle();
    std::printf("%d\n", read());
}
