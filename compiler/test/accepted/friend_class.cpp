// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
class list {
    friend class printer;
  public:
    void push(int key) { head_ = new node{key, head_}; }
  private:
    struct node { int key; node* next OBASE_GUIDED; };
    node* head_ OBASE_GUIDED = nullptr;
};
class printer {
  public:
    explicit printer(const list& l) : list_(l) {}
    int sum() const {
        int total = 0;
        for (list::node* n = list_.head_; n != nullptr; n = n->next) total += n->key;
        return total;
    }
  private:
    const list& list_;
};
int use(const list& l) { return printer(l).sum(); }

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
int main() {
    static list l;
    for (int key = 0; key < 20; ++key) l.push(key);
    std::printf("%d\n", use(l));
}
#endif
