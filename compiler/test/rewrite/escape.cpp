// SPDX-License-Identifier: MIT
// REQUIRES: passes
// What the passes refuse is not written either, unless it is asked for.
// RUN: rm -rf %t && not %rewrite --out=%t --root=%S %s -- -std=c++20 -fno-caret-diagnostics 2>&1 | %filecheck %s
// RUN: not ls %t
// RUN: %rewrite --no-escapes --out=%t --root=%S %s -- -std=c++20
// RUN: grep OBASE_SLOT %t/escape.cpp
#include <obase/marked.h>
struct node {
    int key;
    node* next OBASE_GUIDED;
};
node* kept = nullptr;
class list {
  public:
    // CHECK: escape.cpp:[[@LINE+2]]:{{[0-9]+}}: error: {{.*}}global variable
    // CHECK: obase-rewrite: nothing was written
    void keep() { kept = head_; }
    void push(int key) { head_ = new node{key, head_}; }

  private:
    node* head_ OBASE_GUIDED = nullptr;
};
int main() {
    list l;
    l.push(1);
    l.keep();
}
