// SPDX-License-Identifier: MIT
//
// audit: stale-use: an address goes through a pipe, and is used by another operation.
// plain: plain/pipe.c
#include "list.h"
void send(const void* p);
const void* receive(void);
static struct list L;
void tell(const struct list* l) { send(l->head); }
int main(void) {
    for (int i = 0; i < 30; i++) push(&L, i);
    tell(&L);
    settle();
    printf("%ld\n", sum(&L));
    const struct node* n = receive();
    printf("%d\n", n->key);
}
