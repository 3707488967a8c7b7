// SPDX-License-Identifier: MIT
//
// refused: address of a managed object
// An iterator's reference leaves the operation.
#include "torture.h"
class list {
    struct node {
        int key;
        node* next OBASE_GUIDED;
    };
    node* head_ OBASE_GUIDED = nullptr;

  public:
    void push(int key) { head_ = new node{key, head_}; }
    int& front() { return head_->key; }
};
int main() {
    list l;
    l.push(4);
    settle();
    l.front() = 5;
    settle();
    std::printf("%d\n", l.front());
}
