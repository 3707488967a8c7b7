// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
// What a function of the library calls with elements, which are addresses of objects here.
#include "marks.h"
#include <stdlib.h>
struct node { struct node* next OBASE_GUIDED; long key; };
struct list { struct node* head OBASE_GUIDED; };
static struct node* largest;
static int by_key(const void* a, const void* b) {
    // CHECK: escape_qsort.c:[[@LINE+1]]:{{.*}}error: obase: the address of a managed object is stored into a global variable
    largest = *(struct node* const*)a;
    return (*(struct node* const*)a)->key < (*(struct node* const*)b)->key ? 1 : -1;
}
long sorted(struct list* l) {
    struct node* all[100];
    size_t n = 0;
    for (struct node* at = l->head; at && n < 100; at = at->next) all[n++] = at;
    qsort(all, n, sizeof all[0], by_key);
    return all[0]->key;
}
