/* SPDX-License-Identifier: MIT
 *
 * A shared library keeps addresses, in a variable that its file has and in one that the file has not (of zeros, and larger
 * than a page), and never uses them.
 *
 * SHARED: kept_by_shared_plain.c
 * STATUS: 0
 * EXPECT: suspected: kept-address
 * EXPECT: held by: variable kept_in_file, offset 8
 * EXPECT: held by: variable kept_in_zeros, offset 560000
 * STRICT: 1
 */
#include "list.h"

void keep_in_file(void*);
void keep_in_zeros(void*);

void remember(struct list* l, long one, long other) {
    for (struct node* n = l->head; n != NULL; n = n->next) {
        if (n->key == one) keep_in_file(n);
        if (n->key == other) keep_in_zeros(n);
    }
}

int main(void) {
    fill();
    remember(&all, 77, 78);
    for (int i = 0; i < 200; ++i)
        if (sum(&all) != 20100) return 3;
    puts("done");
}
