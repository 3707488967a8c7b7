// SPDX-License-Identifier: MIT
// RUN: %accept++
// A circular list with a sentinel in the list itself, which is no managed object.
#include "marks.h"
struct node {
    int key = 0;
    node* next OBASE_GUIDED;
    node() : next(this) {}
};
class ring {
  public:
    void add(int key) {
        node* n = new node;
        n->key = key;
        n->next = end_.next;
        end_.next = n;
    }
    int sum() {
        int total = 0;
        for (node* n = end_.next; n != &end_; n = n->next) total += n->key;
        return total;
    }
  private:
    node end_;
};
int use(ring& r) {
    r.add(1);
    return r.sum();
}

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
int main() {
    static ring r;
    for (int key = 0; key < 20; ++key) r.add(key);
    std::printf("%d %d\n", r.sum(), use(r));
}
#endif
