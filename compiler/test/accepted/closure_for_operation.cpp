// SPDX-License-Identifier: MIT
// RUN: %accept++
// A closure and the template that calls it are parts of one operation: it may return an address.
#include "marks.h"
#include <utility>
struct node { int key; node* next OBASE_GUIDED; };
class list {
  public:
    void push(int key) { head_ = new node{key, head_}; }
    bool has(int key) const {
        return find([key](const node* n) { return n->key == key ? n : nullptr; }) != nullptr;
    }
    int first() const {
        const auto at = [](const node* n) -> const node* { return n; };
        const node* n = find(at);
        return n == nullptr ? 0 : n->key;
    }
    int last() const {
        const node* n = find([](auto* at) { return at->next == nullptr ? at : nullptr; });
        return n == nullptr ? 0 : n->key;
    }
  private:
    template <class Take> const node* find(Take&& take) const {
        for (const node* n = head_; n != nullptr; n = n->next)
            if (const node* found = std::forward<Take>(take)(n)) return found;
        return nullptr;
    }
    node* head_ OBASE_GUIDED = nullptr;
};
int use(const list& l) { return l.has(1) + l.first() + l.last(); }

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
int main() {
    static list l;
    for (int key = 0; key < 20; ++key) l.push(key);
    std::printf("%d %d\n", use(l), l.last());
}
#endif
