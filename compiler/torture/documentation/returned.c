// SPDX-License-Identifier: MIT
//
// refused: returns the address of a managed object
// The caller has no scope, so the object may move while it holds the address.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
struct node* find(struct list* l, int key) {
    struct node* n = l->head;
    while (n && n->key != key) n = n->next;
    return n;
}
int main(void) {
    struct list l = {0};
    printf("%d\n", find(&l, 3) != NULL);
}
