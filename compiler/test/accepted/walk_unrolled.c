// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %obase-clang -O2 -S %s -o - | %filecheck %s
// The head, and two steps of the walk: each object has a register of its own (compiler/passes/walks.cpp).
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
int list_has(const struct list* l, int key) {
    for (const struct node* n = l->head; n; n = n->next)
        if (n->key == key) return 1;
    return 0;
}
// CHECK-LABEL: list_has:
// CHECK-COUNT-3: obase_marked_load
// CHECK-NOT: obase_marked_load
// CHECK: .cfi_endproc
