// SPDX-License-Identifier: MIT
//
// refused: computed with as a number
#include "torture.h"
struct node {
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
size_t hash(const struct list* l) { return ((uintptr_t)l->head >> 4) * 2654435761u; }
int main(void) { puts(""); }
