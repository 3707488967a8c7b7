// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
int key_of_next(const struct node* n) {
    int key;
    struct node* next = n->next;
    // CHECK: error:
    __asm__("movl (%1), %0" : "=r"(key) : "r"(next) : "memory");
    return key;
}
