// SPDX-License-Identifier: MIT
//
// refused: global variable
// A function of another file, which is a part of operations, returns the address.
// with: found_elsewhere/lookup.c
// marks: found_elsewhere/marks
#include "found_elsewhere/list.h"
static struct node* kept;
struct node* lookup(struct list* l, int key);
void keep(struct list* l, int key) { kept = lookup(l, key); }
int main(void) {
    struct list l = {0};
    keep(&l, 3);
}
