// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
#include <string.h>
struct node { int key; struct node* next OBASE_GUIDED; };
int last(struct node* n) {
    struct node* p;
    // CHECK: error: 'memcpy' copies the bytes of the marked field 'node::next' [obase:bytes]
    memcpy(&p, &n->next, sizeof p);
    return p == 0;
}
