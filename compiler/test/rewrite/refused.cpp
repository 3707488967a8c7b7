// SPDX-License-Identifier: MIT
// What cannot be rewritten is refused where it is, with what to do instead, and nothing is written.
// RUN: rm -rf %t && not %rewrite --out=%t --root=%S %s -- -std=c++20 -fno-caret-diagnostics 2>&1 | %filecheck %s
// RUN: not ls %t
#include <obase/marked.h>
#include <algorithm>
#define KEY_OF_NEXT(n) ((n)->next->key)
struct node {
    int key;
    node* next OBASE_GUIDED;
    node* other[2] OBASE_GUIDED;
};
struct pair {
    // CHECK-DAG: refused.cpp:[[@LINE+1]]:{{[0-9]+}}: error: 'pair::left' is declared together with another field [obase:rewrite]
    node *left OBASE_GUIDED, *right OBASE_GUIDED;
};
struct pooled {
    // CHECK-DAG: refused.cpp:[[@LINE+1]]:{{[0-9]+}}: error: 'pooled', to which marked fields point, allocates by itself [obase:rewrite]
    static void operator delete(void* address) { ::operator delete(address); }
};
struct owner {
    pooled* held OBASE_GUIDED;
};
class list {
  public:
    list() = default;
    // CHECK-DAG: refused.cpp:[[@LINE+1]]:{{[0-9]+}}: error: a constructor loads a marked field before its body, where no scope is open [obase:rewrite]
    explicit list(const list& other, int) : key_(other.head_->key) {}
    // CHECK-DAG: refused.cpp:[[@LINE+1]]:{{[0-9]+}}: error: an access of a marked field is written by a macro [obase:rewrite]
    int key_of_second() const { return KEY_OF_NEXT(head_); }
    // CHECK-DAG: refused.cpp:[[@LINE+1]]:{{[0-9]+}}: error: the address of a marked field goes where the rewriter cannot follow it [obase:rewrite]
    void swap() { std::iter_swap(&head_, &other_); }
    // CHECK-DAG: refused.cpp:[[@LINE+1]]:{{[0-9]+}}: error: a constructor calls 'list::first', a part of operations before its body, where no scope is open [obase:rewrite]
    explicit list(int) : key_(first()->key) {}
    // CHECK-DAG: refused.cpp:[[@LINE+1]]:{{[0-9]+}}: error: a default argument or the initializer of a field or global variable loads a marked field, where no scope is open [obase:rewrite]
    static int key_of(const list& l, int key = all.head_->key) { return l.key_ + key; }
    int sum() const {
        int total = 0;
        // CHECK-DAG: refused.cpp:[[@LINE+1]]:{{[0-9]+}}: error: a loop over an array of marked fields [obase:rewrite]
        for (const node* n : head_->other) total += n->key;
        return total;
    }
    void choose(bool first) {
        node* local = nullptr;
        node** link = &head_;
        // CHECK-DAG: refused.cpp:[[@LINE+1]]:{{[0-9]+}}: error: 'link' is sometimes the address of a marked field, and here of something else [obase:rewrite]
        if (first) link = &local;
        *link = nullptr;
    }

  private:
    node* head_ OBASE_GUIDED = nullptr;
    node* first() const { return head_; }
    node* other_ = nullptr;
    int key_ = 0;
    // CHECK-DAG: refused.cpp:[[@LINE+1]]:{{[0-9]+}}: error: a default argument or the initializer of a field or global variable loads a marked field, where no scope is open [obase:rewrite]
    int second_ = head_ == nullptr ? 0 : head_->key;
    // CHECK-DAG: refused.cpp:[[@LINE+1]]:{{[0-9]+}}: error: a default argument or the initializer of a field or global variable calls 'list::first', a part of operations, where no scope is open [obase:rewrite]
    bool empty_ = first() == nullptr;
    static const list all;
};
int main() {
    list l;
    l.swap();
}
