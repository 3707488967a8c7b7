// SPDX-License-Identifier: MIT
//
// refused: global variable
// The same through an argument.
// with: found_elsewhere/lookup.c
// marks: found_elsewhere/marks
#include "found_elsewhere/list.h"
static struct node* kept;
int find(struct list* l, int key, struct node** out);
void keep(struct list* l, int key) {
    struct node* n;
    if (find(l, key, &n)) kept = n;
}
int main(void) {
    struct list l = {0};
    keep(&l, 3);
}
