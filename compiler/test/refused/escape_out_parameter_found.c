// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
// The address comes out of a function of the unit through a variable, and is kept.
#include "marks.h"
struct node { int key; struct node* back; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
static int find(struct list* l, int key, struct node** out) {
    for (struct node* n = l->head; n; n = n->next)
        if (n->key == key) {
            *out = n;
            return 1;
        }
    return 0;
}
void tie(struct list* l, int a, int b) {
    struct node *x, *y;
    // CHECK: error: {{.*}}kept in memory that outlives the operation{{.*}}An object has one owner
    if (find(l, a, &x) && find(l, b, &y)) x->back = y;
}
