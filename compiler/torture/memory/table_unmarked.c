// SPDX-License-Identifier: MIT
//
// refused: mark both
// As table_of_pointers.c, but the table's field has no mark.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    long key;
};
struct table {
    struct node** bucket;
};
void erase(struct table* t, long key) {
    for (struct node** at = &t->bucket[key & 15]; *at; at = &(*at)->next)
        if ((*at)->key == key) {
            struct node* n = *at;
            *at = n->next;
            free(n);
            return;
        }
}
int main(void) { puts(""); }
