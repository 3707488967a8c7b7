// SPDX-License-Identifier: MIT
//
// right: addresses of one operation are compared for being the same.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static struct list L;
void push(struct list* l, int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = l->head;
    l->head = n;
}
static struct node* find(const struct list* l, int key) {
    struct node* n = l->head;
    while (n && n->key != key) n = n->next;
    return n;
}
int same(const struct list* l, int a, int b) { return find(l, a) == find(l, b); }
int place(const struct list* l, int key) {
    const struct node* sought = find(l, key);
    int i = 0;
    for (const struct node* n = l->head; n != sought; n = n->next) i++;
    return i;
}
int main(void) {
    for (int i = 0; i < 40; i++) push(&L, i);
    settle();
    printf("%d %d %d\n", same(&L, 3, 3), same(&L, 3, 4), place(&L, 10));
}
