// SPDX-License-Identifier: MIT
//
// right: a new object is stored into one field, and moved on into another one in the same operation.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct list {
    struct node* fresh OBASE_GUIDED;
    struct node* head OBASE_GUIDED;
};
static struct list L;
void add(struct list* l, int key) {
    struct node* n = malloc(sizeof *n);
    l->fresh = n;
    n->key = key;
    n->next = l->head;
    l->head = n;
    l->fresh = NULL;
}
long sum(const struct list* l) {
    long s = 0;
    for (const struct node* n = l->head; n; n = n->next) s += n->key;
    return s;
}
int main(void) {
    for (int i = 0; i < 80; i++) add(&L, i);
    settle();
    printf("%ld\n", sum(&L));
}
