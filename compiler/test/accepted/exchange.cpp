// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
#include <utility>
struct node { int key; node* next OBASE_GUIDED; };
class list {
  public:
    void push(int key) { head_ = new node{key, head_}; }
    void clear() {
        node* n = std::exchange(head_, nullptr);
        while (n != nullptr) delete std::exchange(n, n->next);
    }
    void swap(list& other) { std::swap(head_, other.head_); }
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
void use(list& a, list& b) {
    a.swap(b);
    a.clear();
}

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
int main() {
    static list a, b;
    for (int key = 0; key < 20; ++key) a.push(key), b.push(-key);
    a.swap(b);
    use(a, b);
    b.push(1);
    std::puts("done");
}
#endif
