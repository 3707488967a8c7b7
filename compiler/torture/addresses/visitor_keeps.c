// SPDX-License-Identifier: MIT
//
// refused: global variable
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static const struct node* largest;
static void look(const struct node* n) {
    if (!largest || n->key > largest->key) largest = n;
}
void each(const struct list* l, void (*visit)(const struct node*)) {
    for (const struct node* n = l->head; n; n = n->next) visit(n);
}
int main(void) {
    struct list l = {0};
    each(&l, look);
}
