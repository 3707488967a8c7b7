// SPDX-License-Identifier: MIT
//
// right: a circular list whose end is a node that is no managed object.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct list {
    struct node sentinel;
};
static struct list L;
void init(struct list* l) { l->sentinel.next = &l->sentinel; }
void push(struct list* l, int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = l->sentinel.next;
    l->sentinel.next = n;
}
int sum(struct list* l) {
    int s = 0;
    for (struct node* n = l->sentinel.next; n != &l->sentinel; n = n->next) s += n->key;
    return s;
}
int main(void) {
    init(&L);
    for (int i = 0; i < 77; i++) push(&L, i);
    settle();
    printf("%d\n", sum(&L));
    push(&L, 1000);
    settle();
    printf("%d\n", sum(&L));
}
