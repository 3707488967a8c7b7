// SPDX-License-Identifier: MIT
// RUN: %refuse
// The same first member, but not marked there.
#include "marks.h"
struct node { struct node* next OBASE_GUIDED; int key; };
struct list { struct node* head OBASE_GUIDED; };
struct link { struct link* next; };
int length(struct list* l) {
    int n = 0;
    // CHECK: error: 'struct node' is looked at as 'struct link', and only one of them has the marked field 'node::next' [obase:cast]
    for (struct link* k = (struct link*)l->head; k; k = k->next) ++n;
    return n;
}
