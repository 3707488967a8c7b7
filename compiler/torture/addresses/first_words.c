// SPDX-License-Identifier: MIT
//
// refused: obase:cast
// The struct as an array of pointers.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
void* first_word(const struct list* l) { return ((void**)l->head)[0] ? (void*)1 : NULL; }
int main(void) { puts(""); }
