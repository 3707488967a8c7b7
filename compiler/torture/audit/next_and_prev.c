// SPDX-License-Identifier: MIT
//
// audit: two-fields: a list with links in both directions, both marked.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    struct node* prev OBASE_GUIDED;
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static struct list L;
static void between(struct node* prev, struct node* n, struct node* next) {
    n->prev = prev;
    n->next = next;
    if (next) next->prev = n;
}
void push(struct list* l, int key) {
    struct node* n = calloc(1, sizeof *n);
    n->key = key;
    between(NULL, n, l->head);
    l->head = n;
}
int last_but_one(const struct list* l) {
    const struct node* n = l->head;
    while (n->next) n = n->next;
    return n->prev->key;
}
int main(void) {
    for (int i = 0; i < 30; i++) push(&L, i);
    settle();
    printf("%d\n", last_but_one(&L));
}
