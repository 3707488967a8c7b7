// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
class list {
  public:
    void push(int key) { head_ = new node{key, head_}; }
    template <class F> void each(F&& f) const {
        for (node* n = head_; n != nullptr; n = n->next) f(n->key);
    }
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
int sum(const list& l) {
    int total = 0;
    l.each([&total](int key) { total += key; });
    return total;
}

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
int main() {
    static list l;
    for (int key = 0; key < 20; ++key) l.push(key);
    std::printf("%d\n", sum(l));
}
#endif
