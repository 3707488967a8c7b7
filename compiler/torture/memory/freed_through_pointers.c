// SPDX-License-Identifier: MIT
//
// right: free is called through a parameter and through a field of a struct.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    long key;
};
struct list {
    struct node* head OBASE_GUIDED;
    void (*destroy)(void*);
};
static struct list L = {NULL, free};
void push(struct list* l, long key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = l->head;
    l->head = n;
}
void pop(struct list* l) {
    struct node* n = l->head;
    l->head = n->next;
    l->destroy(n);
}
void clear(struct list* l, void (*destroy)(void*)) {
    while (l->head) {
        struct node* n = l->head;
        l->head = n->next;
        destroy(n);
    }
}
long sum(const struct list* l) {
    long s = 0;
    for (const struct node* n = l->head; n; n = n->next) s += n->key;
    return s;
}
int main(void) {
    for (int r = 0; r < 3; r++) {
        for (int i = 0; i < 100; i++) push(&L, i);
        settle();
        for (int i = 0; i < 10; i++) pop(&L);
        printf("%ld\n", sum(&L));
        clear(&L, free);
        settle();
    }
}
