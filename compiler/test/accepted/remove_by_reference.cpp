// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
class list {
  public:
    void push(int key) { head_ = new node{key, head_}; }
    bool pop() {
        node*& first = head_;
        if (first == nullptr) return false;
        node* n = first;
        first = n->next;
        delete n;
        return true;
    }
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
bool use(list& l) { return l.pop(); }

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
int main() {
    static list l;
    for (int key = 0; key < 20; ++key) l.push(key);
    int popped = 0;
    while (use(l)) ++popped;
    std::printf("%d\n", popped);
}
#endif
