/* SPDX-License-Identifier: MIT */
/* For visibility/precompiled.cpp and .c: what is decided for a header must not depend on whether it is
   precompiled. item::next is marked by a file. */
#pragma once
#include "marks.h"
struct late { int key; };
/* Not known to be about managed objects yet. */
static inline int too_early(const struct late* l) { return l->key; }
struct holder { struct late* held OBASE_GUIDED; };
static int key_of(const struct late* l) { return l->key; }
static int not_used_outside(const struct late* l) { return l->key; }
struct item { int key; struct item* next; };
static inline int item_key(const struct item* i) { return i->next == 0 ? 0 : i->next->key; }
#ifdef __cplusplus
#include <functional>
#include <memory>
class list {
  public:
    void push(int key) { head_ = new node{key, head_}; }
    bool has(int key) const { return find(key) != nullptr; }
    int sum() const {
        int s = 0;
        run([&](const node* n) { s += n->key; });
        return s;
    }
    int stored() const {
        const std::function<int()> first = [this] { return head_->key; };
        return first();
    }

  private:
    struct node { int key; node* next OBASE_GUIDED = nullptr; };
    template <class F> void run(F f) const {
        for (node* n = head_; n != nullptr; n = n->next) f(n);
    }
    node* find(int key) const {
        for (node* n = head_; n != nullptr; n = n->next)
            if (n->key == key) return n;
        return nullptr;
    }
    node* head_ OBASE_GUIDED = nullptr;
};
inline list all;
struct summed { int sum = key_of(nullptr); };
template <class T> struct box {
    std::unique_ptr<T> at OBASE_GUIDED;
    bool full() const { return at != nullptr; }
};
inline bool is_full(const box<late>& b) { return b.full(); }
/* Code is made of it in whatever includes the header. */
int not_inline(const item* i) { return i->next->key; }
#endif
