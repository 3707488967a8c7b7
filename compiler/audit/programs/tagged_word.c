/* SPDX-License-Identifier: MIT
 *
 * A function of another unit keeps an address with a bit set, in memory of malloc, and never uses it.
 *
 * PLAIN: tagged_word_plain.c
 * STATUS: 0
 * EXPECT: suspected: kept-address
 * EXPECT: held by: memory at
 * STRICT: 1
 * KNOWN: kept-address node::next   # the cache is cleared before it is used
 */
#include "list.h"

void keep_it(void*);

void remember(struct list* l, long key) {
    for (struct node* n = l->head; n != NULL; n = n->next)
        if (n->key == key) keep_it(n);
}

int main(void) {
    fill();
    remember(&all, 77);
    for (int i = 0; i < 200; ++i)
        if (sum(&all) != 20100) return 3;
    puts("done");
}
