/* SPDX-License-Identifier: MIT */
#define NO_LIST
#include "list.h"

void push(struct list* l, long key);
long sum(struct list* l);
static struct list own;

int walk(void) {
    for (long key = 1; key <= 20; ++key) push(&own, key);
    long s = 0;
    for (struct node* n = own.head; n != NULL; n = n->next) s += n->key;
    printf("%ld %ld\n", s, sum(&own));
    return 0;
}
