// SPDX-License-Identifier: MIT
//
// refused: obase:cast
// A struct with the same beginning, without the mark.
#include "torture.h"
struct link {
    struct link* next;
};
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
int length(const struct list* l) {
    int n = 0;
    for (const struct link* k = (const struct link*)l->head; k; k = k->next) n++;
    return n;
}
int main(void) { puts(""); }
