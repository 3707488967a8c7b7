// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
// Handed to a function of the unit through a pointer.
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
static struct node* kept;
// CHECK: error: {{.*}}stored into a global variable
static void keep(struct node* n, int key) { if (n->key == key) kept = n; }
void each(struct list* l, void (*use)(struct node*, int), int key) {
    for (struct node* n = l->head; n; n = n->next) use(n, key);
}
void find(struct list* l, int key) { each(l, keep, key); }
int found(void) { return kept->key; }
