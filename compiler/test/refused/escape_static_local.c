// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
#include "marks.h"
struct node { int key; };
struct list { struct node* head OBASE_GUIDED; };
int same_as_before(struct list* l) {
    static struct node* before;
    int same = before == l->head;
    // CHECK: error:
    before = l->head;
    return same;
}
