// SPDX-License-Identifier: MIT
//
// audit: stale-use: a library hands back an address that it got as a void*, in another operation.
// plain: plain/keeps.c
#include "list.h"
void keep(const void* p);
const void* give_back(void);
static struct list L;
void remember(const struct list* l) { keep(l->head->text); }
int main(void) {
    for (int i = 0; i < 30; i++) push(&L, i);
    remember(&L);
    settle();
    printf("%ld\n", sum(&L));
    printf("%s\n", (const char*)give_back());
}
