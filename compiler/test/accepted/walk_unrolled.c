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

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct list all;
static void push(int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = all.head;
    all.head = n;
}
int main(void) {
    for (int key = 0; key < 20; ++key) push(key);
    printf("%d %d\n", list_has(&all, 3), list_has(&all, 30));
}
#endif
