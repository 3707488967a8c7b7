// SPDX-License-Identifier: MIT
// RUN: %accept
// The address of a slot, in a variable of the operation.
#include "marks.h"
#include <stdlib.h>
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
int list_remove(struct list* l, int key) {
    for (struct node** link = &l->head; *link; link = &(*link)->next)
        if ((*link)->key == key) {
            struct node* n = *link;
            *link = n->next;
            free(n);
            return 1;
        }
    return 0;
}
