// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
class list {
  public:
    void push(int key) { head_ = new node{key, head_}; }
    friend int length(const list& l) {
        int count = 0;
        for (node* n = l.head_; n != nullptr; n = n->next) ++count;
        return count;
    }
    friend bool operator==(const list& a, const list& b) { return length(a) == length(b); }
  private:
    struct node { int key; node* next OBASE_GUIDED; };
    node* head_ OBASE_GUIDED = nullptr;
};
bool use(const list& a, const list& b) { return a == b; }

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
int main() {
    static list a, b;
    for (int key = 0; key < 20; ++key) a.push(key), b.push(-key);
    std::printf("%d\n", use(a, b));
    a.push(1);
    std::printf("%d\n", use(a, b));
}
#endif
