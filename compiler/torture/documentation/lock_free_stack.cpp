// SPDX-License-Identifier: MIT
//
// right: a stack without a lock; a node is freed after it was taken out.
#include "torture.h"

#include <atomic>
#include <thread>
class stack {
    struct node {
        long key;
        node* next OBASE_GUIDED;
    };
    std::atomic<node*> top_ OBASE_GUIDED = nullptr;

  public:
    void push(long key) {
        node* n = new node{key, top_.load()};
        for (node* expected = n->next; !top_.compare_exchange_weak(expected, n);)
            n->next = expected;
    }
    long pop() {
        node* n = top_.load();
        while (n != nullptr && !top_.compare_exchange_weak(n, n->next)) {
        }
        if (n == nullptr) return -1;
        const long key = n->key;
        delete n;
        return key;
    }
};
int main() {
    static stack s;
    auto work = [](long first) {
        for (long i = 0; i < 300; ++i) s.push(first + i);
    };
    std::thread a(work, 0L);
    std::thread b(work, 1000L);
    settle();
    a.join();
    b.join();
    settle();
    long sum = 0;
    for (long key; (key = s.pop()) >= 0;) sum += key;
    std::printf("%ld\n", sum);
}
