// SPDX-License-Identifier: MIT
//
// audit: stale-use: what was freed is used by a function that is compiled elsewhere.
// plain: plain/observer.c
#include "list.h"
void observe(const int* key);
int observed(void);
static struct list L;
void watch(const struct list* l) { observe(&l->head->key); }
void pop(struct list* l) {
    struct node* n = l->head;
    l->head = n->next;
    free(n->text);
    free(n);
}
int main(void) {
    for (int i = 1; i < 50; i++) push(&L, i);
    watch(&L);
    pop(&L);
    settle();
    printf("%ld\n", sum(&L));
    printf("%d\n", observed() != 0);
}
