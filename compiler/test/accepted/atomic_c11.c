// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
#include <stdatomic.h>
struct node { int key; };
struct box { _Atomic(struct node*) held OBASE_GUIDED; };
int box_key(struct box* b) {
    struct node* n = atomic_load_explicit(&b->held, memory_order_acquire);
    return n ? n->key : 0;
}
int box_put(struct box* b, struct node* n) {
    struct node* expected = 0;
    return atomic_compare_exchange_strong(&b->held, &expected, n);
}
