// SPDX-License-Identifier: MIT
// RUN: %accept++
// No copy: the object is made where the caller wants it.
#include "marks.h"
struct node { int key; };
class list {
  public:
    explicit list(int key) : head_(new node{key}) {}
    list(const list&) = delete;
    bool empty() const { return head_ == nullptr; }
  private:
    node* head_ OBASE_GUIDED;
};
list one(int key) { return list(key); }
bool use() { return one(1).empty(); }

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
int main() {
    static list l = one(2);
    std::printf("%d %d\n", use(), l.empty());
}
#endif
