// SPDX-License-Identifier: MIT
//
// refused: global variable
// A function that qsort calls with elements keeps what one of them is.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static const struct node* largest;
static int by_key(const void* a, const void* b) {
    largest = *(const struct node* const*)a;
    return (*(const struct node* const*)a)->key - (*(const struct node* const*)b)->key;
}
int sorted(const struct list* l) {
    const struct node* all[50];
    size_t n = 0;
    for (const struct node* i = l->head; i && n < 50; i = i->next) all[n++] = i;
    qsort(all, n, sizeof all[0], by_key);
    return all[0]->key;
}
int main(void) { puts(""); }
