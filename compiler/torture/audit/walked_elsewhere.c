// SPDX-License-Identifier: MIT
//
// audit: unconverted-access: a unit that was compiled without the passes walks the list.
// plain: plain/walk.c
#include "list.h"
long walk(const struct list* l);
static struct list L;
int main(void) {
    for (int i = 0; i < 30; i++) push(&L, i);
    settle();
    printf("%ld\n", sum(&L));
    settle();
    printf("%ld\n", walk(&L));
}
