// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %accept++ -fsanitize=undefined
// RUN: %obase-clang++ -O0 -fsanitize=undefined --obase-trust=%t.trust -S -emit-llvm %s -o - | %filecheck %s
// RUN: not grep -E "^(call|pointer)" %t.trust
// Its checks compute with addresses of slots and of objects, and are still there.
#include "marks.h"

struct node {
    int key;
    node* next OBASE_GUIDED;
    node* some[4] OBASE_GUIDED;
};

// CHECK-LABEL: define {{.*}} @_Z3keyP4nodei
// CHECK: call void @__ubsan_handle_type_mismatch_v1
// CHECK: call ptr @obase_marked_load
// CHECK: call void @__ubsan_handle_pointer_overflow
int key(node* first, int index) { return first->next->some[index]->key; }

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
static node first;
static void grow(int number) {
    node* n = new node{};
    for (int i = 0; i < 4; ++i) n->some[i] = new node{number + i, nullptr, {}};
    n->next = first.next;
    first.next = n;
}
int main() {
    for (int number = 0; number < 10; ++number) grow(number);
    std::printf("%d %d\n", key(&first, 0), key(&first, 3));
}
#endif
