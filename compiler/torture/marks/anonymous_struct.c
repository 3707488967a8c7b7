// SPDX-License-Identifier: MIT
//
// right: a marked field of an anonymous struct within a struct.
#include "torture.h"
struct node {
    struct {
        struct node* next OBASE_GUIDED;
        int key;
    };
    int more;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static struct list L;
void push(struct list* l, int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->more = 2 * key;
    n->next = l->head;
    l->head = n;
}
int sum(const struct list* l) {
    int s = 0;
    for (const struct node* n = l->head; n; n = n->next) s += n->key + n->more;
    return s;
}
int main(void) {
    for (int i = 0; i < 60; i++) push(&L, i);
    settle();
    printf("%d\n", sum(&L));
}
