// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { int key; };
struct list { struct node* head OBASE_GUIDED; };
static struct node** current;
void watch(struct list* l) {
    // CHECK: error: the address of the slot 'list::head' is kept beyond the operation [obase:slot-escape]
    current = &l->head;
}
int watched(void) { return *current != 0; }
