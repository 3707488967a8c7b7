/* SPDX-License-Identifier: MIT
 *
 * An operation frees the first element and leaves its address where it was.
 *
 * STATUS: 1
 * EXPECT: error: freed-in-field
 * EXPECT: field: list::head, struct node *
 * EXPECT: freed at {folder}/freed_in_field.c:12
 */
#include "list.h"

void drop_first(struct list* l) { free(l->head); }

int main(void) {
    push(&all, 1);
    drop_first(&all);
    puts("done");
}
