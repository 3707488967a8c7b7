// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
// Out of a variable, and changed so that it can be changed back.
#include "marks.h"
#include <stdint.h>
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
static uintptr_t kept;
static void first(struct list* l, struct node** out) { *out = l->head; }
void save(struct list* l) {
    struct node* n;
    first(l, &n);
    // CHECK: error: {{.*}}stored into a global variable
    kept = (uintptr_t)n ^ 0x5555;
}
