// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
#include <coroutine>
struct generator {
    struct promise_type {
        int value = 0;
        generator get_return_object() { return {}; }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(int v) { value = v; return {}; }
        void return_void() {}
        void unhandled_exception() {}
    };
};
struct node { int key; node* next OBASE_GUIDED; };
// CHECK: error: 'keys' is part of an operation and a coroutine{{.*}}[obase:coroutine]
generator keys(const node* n) {
    for (; n != nullptr; n = n->next) co_yield n->key;
}
