// SPDX-License-Identifier: MIT
// RUN: %accept++
// The move that the compiler writes for the outer class calls the one written by hand.
#include "marks.h"
#include <utility>
struct node { int key; };
class list {
  public:
    list() = default;
    list(list&& from) noexcept : head_(from.head_) { from.head_ = nullptr; }
    void fill(int key) { head_ = new node{key}; }
    int key() const { return head_ != nullptr ? head_->key : 0; }
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
struct session { int id = 0; list items; };
session* moved(session& from) { return new session(std::move(from)); }

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
int main() {
    static session from;
    from.id = 3;
    from.items.fill(4);
    session* to = moved(from);
    std::printf("%d %d %d\n", to->id, to->items.key(), from.items.key());
    delete to;
}
#endif
