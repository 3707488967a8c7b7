// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse++
#include "marks.h"
struct node { int key; };
struct list { node* head OBASE_GUIDED; };
int check(const list& l) {
    // CHECK: error:
    if (l.head->key < 0) throw l.head;
    return l.head->key;
}
