// SPDX-License-Identifier: MIT
//
// refused: number
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    uintptr_t both;
};
struct list {
    struct node* head OBASE_GUIDED;
};
void link(struct list* l) { l->head->both = (uintptr_t)l->head ^ (uintptr_t)l->head->next; }
int main(void) { puts(""); }
