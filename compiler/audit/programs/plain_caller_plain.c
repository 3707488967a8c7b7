/* SPDX-License-Identifier: MIT */
#define NO_LIST
#include "list.h"

void push(struct list* l, long key);
long sum(struct list* l);

/* Both are called by the same function, which is named once. */
void hand_on(struct list* l) {
    for (long key = 1; key <= 20; ++key) push(l, key);
    if (sum(l) != 210) puts("wrong");
}
