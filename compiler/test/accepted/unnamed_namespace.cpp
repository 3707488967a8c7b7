// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %accept++
// RUN: %obase-clang++ -O1 -S -emit-llvm -o - %s | %filecheck %s
// std::make_unique of a type in an unnamed namespace is a function of this unit alone. What it
// allocates is managed all the same.
#include "marks.h"
#include <memory>
namespace {
struct node { int key = 0; node* next OBASE_GUIDED = nullptr; };
struct list { node* head OBASE_GUIDED = nullptr; };
list all;
void push(list& l) {
    std::unique_ptr<node> fresh = std::make_unique<node>();
    fresh->next = l.head;
    l.head = fresh.release();
}
}
// CHECK-NOT: call {{.*}}@_Znwm
// CHECK: @obase_marked_new(i64
// CHECK-NOT: call {{.*}}@_Znwm
void push_all() { push(all); }

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
static int length() {
    int count = 0;
    for (const node* n = all.head; n != nullptr; n = n->next) ++count;
    return count;
}
int main() {
    for (int i = 0; i < 20; ++i) push_all();
    std::printf("%d\n", length());
}
#endif
