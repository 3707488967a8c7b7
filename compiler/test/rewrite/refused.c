// SPDX-License-Identifier: MIT
// What cannot be rewritten in C.
// RUN: rm -rf %t && not %rewrite --out=%t --root=%S %s -- -std=gnu11 -fno-caret-diagnostics 2>&1 | %filecheck %s
// RUN: not ls %t
#include <obase/marked.h>
#include <stddef.h>
struct node {
    int key;
    struct node* next OBASE_GUIDED;
};
struct box {
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{[0-9]+}}: error: 'box::held' has a type that the rewriter has no slot for [obase:rewrite]
    _Atomic(struct node*) held OBASE_GUIDED;
};
// CHECK-DAG: refused.c:[[@LINE+1]]:{{[0-9]+}}: error: 'drop' takes or returns the address of a marked field, and C has no type by which callers elsewhere would know [obase:rewrite]
void drop(struct node** link) { *link = NULL; }
void use(struct node* n) {
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{[0-9]+}}: error: 'node::next' gets a value in an initializer [obase:rewrite]
    struct node local = {1, n};
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{[0-9]+}}: error: a variable with marked fields is declared within a statement [obase:rewrite]
    for (struct node other = {1, NULL}; other.key < 3; ++other.key) local.key += other.key;
    drop(&n->next);
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{[0-9]+}}: error: the address of a marked field goes where the rewriter cannot follow it [obase:rewrite]
    __sync_bool_compare_and_swap(&n->next, NULL, NULL);
    // CHECK-DAG: refused.c:[[@LINE+1]]:{{[0-9]+}}: error: this atomic access of a marked field has no other form [obase:rewrite]
    __atomic_store(&n->next, &n, __ATOMIC_SEQ_CST);
}
