/* SPDX-License-Identifier: MIT
 *
 * After share() the last node of the list of list.h has two owners.
 */
#pragma once
#include "list.h"

struct other {
    struct node* head OBASE_GUIDED;
};
static struct other other;
static struct node* last(void) {
    struct node* n = all.head;
    while (n != NULL && n->next != NULL) n = n->next;
    return n;
}
void share(void) { other.head = last(); }
