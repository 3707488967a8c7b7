// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
int tagged(struct node* n) {
    // CHECK: error: the address of the slot 'node::next' becomes a 'unsigned long *' [obase:cast]
    return (int)(*(unsigned long*)&n->next & 1);
}
