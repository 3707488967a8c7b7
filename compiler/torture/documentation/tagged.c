// SPDX-License-Identifier: MIT
//
// refused: number
// The lowest bit of a link says that the node is erased.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
void mark(struct list* l) { l->head->next = (struct node*)((uintptr_t)l->head->next | 1); }
int main(void) {
    struct list l = {0};
    mark(&l);
    puts("");
}
