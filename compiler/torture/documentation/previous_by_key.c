// SPDX-License-Identifier: MIT
//
// right: instead of a backward link each node has the key of the one before.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key, before;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static struct list L;
void push(struct list* l, int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->before = -1;
    n->next = l->head;
    if (n->next) n->next->before = key;
    l->head = n;
}
int before(const struct list* l, int key) {
    for (const struct node* n = l->head; n; n = n->next)
        if (n->key == key) return n->before;
    return -2;
}
int main(void) {
    for (int i = 0; i < 40; i++) push(&L, i);
    settle();
    for (int i = 0; i < 40; i += 5) printf("%d ", before(&L, i));
    puts("");
}
