/* SPDX-License-Identifier: MIT
 *
 * A function of another unit keeps the address that an operation hands to it.
 *
 * PLAIN: kept_elsewhere_plain.c
 * STATUS: 1
 * EXPECT: error: stale-use
 * EXPECT: at: {folder}/kept_elsewhere_plain.c:8:{any} in use_it
 * EXPECT: field: node::next, struct node *, declared at {folder}/list.h:11
 * EXPECT: object: 64 bytes, made at {folder}/list.h:{any} in push
 * EXPECT: let out by: the operation at {folder}/kept_elsewhere.c:{any} in remember
 * EXPECT: held by: variable kept, offset 0
 */
#include "list.h"

void keep_it(void*);
long use_it(void);

void remember(struct list* l, long key) {
    for (struct node* n = l->head; n != NULL; n = n->next)
        if (n->key == key) keep_it(n);
}

int main(void) {
    fill();
    remember(&all, 77);
    printf("%ld\n", sum(&all));
    printf("%ld\n", use_it());
}
