// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
int first(struct list* l) {
    struct node* n;
    // CHECK: error: inline assembly gets the address of a struct with the marked field 'list::head' [obase:asm]
    __asm__("movq (%1), %0" : "=r"(n) : "r"(l) : "memory");
    return n->key;
}
