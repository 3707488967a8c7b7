// SPDX-License-Identifier: MIT
//
// refused: obase:coroutine
#include "torture.h"

#include <coroutine>
struct task {
    struct promise_type {
        task get_return_object() { return {}; }
        std::suspend_never initial_suspend() { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() {}
    };
};
class list {
    struct node {
        int key;
    };
    node* head_ OBASE_GUIDED = nullptr;

  public:
    task run() {
        node* n = head_;
        co_await std::suspend_never{};
        if (n) n->key++;
    }
};
int main() {
    list l;
    l.run();
}
