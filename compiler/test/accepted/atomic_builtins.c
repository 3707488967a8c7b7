// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
int next_key(struct node* n) {
    struct node* next = __atomic_load_n(&n->next, __ATOMIC_ACQUIRE);
    return next ? next->key : 0;
}
void set_next(struct node* n, struct node* next) {
    __atomic_store_n(&n->next, next, __ATOMIC_RELEASE);
}
int link_after(struct node* n, struct node* added) {
    return __sync_bool_compare_and_swap(&n->next, (struct node*)0, added);
}
