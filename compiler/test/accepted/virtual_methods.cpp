// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
struct set {
    virtual ~set() = default;
    virtual bool has(int key) const = 0;
};
class list_set final : public set {
  public:
    void add(int key) { head_ = new node{key, head_}; }
    bool has(int key) const override {
        for (node* n = head_; n != nullptr; n = n->next)
            if (n->key == key) return true;
        return false;
    }
  private:
    struct node { int key; node* next OBASE_GUIDED; };
    node* head_ OBASE_GUIDED = nullptr;
};
bool use(const set& s) { return s.has(1); }
bool make_and_use() { return use(list_set()); }

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
int main() {
    static list_set s;
    for (int key = 0; key < 20; ++key) s.add(key);
    std::printf("%d %d\n", make_and_use(), use(s));
}
#endif
