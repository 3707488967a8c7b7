// SPDX-License-Identifier: MIT
//
// right: addresses in the frame are sorted by themselves, to find what is there twice; in one operation they do not change.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static int by_address(const void* a, const void* b) {
    const struct node *x = *(const struct node* const*)a, *y = *(const struct node* const*)b;
    return x < y ? -1 : x > y;
}
static struct list L;
void push(struct list* l, int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = l->head;
    l->head = n;
}
int twice(const struct list* l) {
    const struct node* all[50];
    size_t n = 0;
    int found = 0;
    for (const struct node* i = l->head; i && n < 50; i = i->next) {
        all[n++] = i;
        if (i->key % 3 == 0 && n < 50) all[n++] = i;
    }
    qsort(all, n, sizeof all[0], by_address);
    for (size_t k = 1; k < n; k++) found += all[k] == all[k - 1];
    return found;
}
int main(void) {
    for (int i = 0; i < 30; i++) push(&L, i);
    settle();
    printf("%d\n", twice(&L));
}
