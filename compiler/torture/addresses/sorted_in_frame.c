// SPDX-License-Identifier: MIT
//
// right: addresses in the frame are sorted by what they point to.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static struct list L;
void push(struct list* l, int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = l->head;
    l->head = n;
}
static int by_key(const void* a, const void* b) {
    const struct node *x = *(const struct node* const*)a, *y = *(const struct node* const*)b;
    return (x->key > y->key) - (x->key < y->key);
}
int median(const struct list* l) {
    const struct node* all[100];
    size_t n = 0;
    for (const struct node* i = l->head; i && n < 100; i = i->next) all[n++] = i;
    qsort(all, n, sizeof all[0], by_key);
    return all[n / 2]->key;
}
int main(void) {
    for (int i = 0; i < 99; i++) push(&L, i * 50 % 99);
    settle();
    printf("%d\n", median(&L));
}
