// SPDX-License-Identifier: MIT
// RUN: %accept++
// A coroutine that calls operations, and is none.
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
class list {
  public:
    void push(int key) { head_ = new node{key, head_}; }
    bool at(int index, int& key) const {
        node* n = head_;
        while (n != nullptr && index-- > 0) n = n->next;
        if (n != nullptr) key = n->key;
        return n != nullptr;
    }
  private:
    struct node { int key; node* next OBASE_GUIDED; };
    node* head_ OBASE_GUIDED = nullptr;
};
generator keys(const list& l) {
    int key = 0;
    for (int i = 0; l.at(i, key); ++i) co_yield key;
}

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
int main() {
    static list l;
    for (int key = 0; key < 20; ++key) l.push(key);
    int key = 0, sum = 0;
    for (int i = 0; l.at(i, key); ++i) sum += key;
    keys(l); // begins, and is suspended at once
    std::printf("%d\n", sum);
}
#endif
