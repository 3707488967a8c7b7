// SPDX-License-Identifier: MIT
//
// right: sizeof and the address of the struct itself.
#include "torture.h"
struct node {
    int key;
    struct node* next OBASE_GUIDED;
    int last;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static struct list L;
void push(struct list* l, int key) {
    struct node* n = calloc(1, sizeof(struct node));
    n->key = key;
    n->last = (int)offsetof(struct node, last) + (int)sizeof n->next;
    n->next = l->head;
    l->head = n;
}
int sum(const struct list* l) {
    int s = 0;
    for (const struct node* n = l->head; n; n = n->next) s += n->key * n->last;
    return s;
}
int main(void) {
    for (int i = 0; i < 60; i++) push(&L, i);
    settle();
    printf("%d\n", sum(&L));
}
