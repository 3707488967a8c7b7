// SPDX-License-Identifier: MIT
//
// refused: returns the address of a managed object
// with_node gives the address to a thread's function, which outlives the operation.
#include "torture.h"

#include <functional>
class list {
    struct node {
        int key;
    };
    node* head_ OBASE_GUIDED = nullptr;

  public:
    std::function<int()> later() const {
        return [n = head_] { return n ? n->key : 0; };
    }
};
int main() {
    list l;
    std::printf("%d\n", l.later()());
}
