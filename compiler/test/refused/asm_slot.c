// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
void clear(struct node* n) {
    // CHECK: error: inline assembly uses the slot 'node::next' [obase:asm]
    __asm__("movq $0, %0" : "=m"(n->next));
}
