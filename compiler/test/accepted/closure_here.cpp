// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
class list {
  public:
    void push(int key) { head_ = new node{key, head_}; }
    int count(int key) const {
        int found = 0;
        const auto look = [&](const node* n) { found += n->key == key; };
        for (node* n = head_; n != nullptr; n = n->next) look(n);
        return found;
    }
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
int use(const list& l) { return l.count(1); }

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
int main() {
    static list l;
    for (int key = 0; key < 20; ++key) l.push(key % 3);
    std::printf("%d\n", use(l));
}
#endif
