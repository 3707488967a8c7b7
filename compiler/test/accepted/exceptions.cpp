// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
#include <stdexcept>
struct node { int key; node* next OBASE_GUIDED; };
class list {
  public:
    void push(int key) { head_ = new node{key, head_}; }
    int at(int index) const {
        node* n = head_;
        while (n != nullptr && index-- > 0) n = n->next;
        if (n == nullptr) throw std::out_of_range("list::at");
        return n->key;
    }
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
int use(const list& l) {
    try {
        return l.at(3);
    } catch (const std::out_of_range&) {
        return -1;
    }
}

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
int main() {
    static list l;
    const int none = use(l);
    for (int key = 0; key < 20; ++key) l.push(key);
    std::printf("%d %d\n", none, use(l));
}
#endif
