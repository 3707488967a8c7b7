// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
class chain {
  protected:
    node* head_ OBASE_GUIDED = nullptr;
};
class list : public chain {
  public:
    bool has(int key) const {
        for (node* n = head_; n != nullptr; n = n->next)
            if (n->key == key) return true;
        return false;
    }
};
bool use(const list& l) { return l.has(1); }

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
class filled : public list {
  public:
    void push(int key) { head_ = new node{key, head_}; }
};
int main() {
    static filled l;
    for (int key = 0; key < 20; ++key) l.push(key);
    std::printf("%d %d\n", use(l), l.has(30));
}
#endif
