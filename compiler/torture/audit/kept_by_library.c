// SPDX-License-Identifier: MIT
//
// audit: stale-use: a function that is compiled elsewhere keeps an address, and uses it later.
// plain: plain/observer.c
#include "list.h"
void observe(const int* key);
int observed(void);
static struct list L;
void watch(const struct list* l) { observe(&l->head->key); }
int main(void) {
    for (int i = 1; i < 50; i++) push(&L, i);
    watch(&L);
    settle();
    printf("%ld\n", sum(&L));
    printf("%d\n", observed());
}
