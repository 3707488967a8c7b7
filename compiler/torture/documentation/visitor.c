// SPDX-License-Identifier: MIT
//
// right: a function is called with each object, and keeps numbers.
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
void each(struct list* l, void (*visit)(const struct node*, void*), void* with) {
    for (struct node* n = l->head; n; n = n->next) visit(n, with);
}
static void add(const struct node* n, void* with) { *(long*)with += n->key; }
static void count_even(const struct node* n, void* with) { *(long*)with += n->key % 2 == 0; }
int main(void) {
    for (int i = 0; i < 90; i++) push(&L, i);
    settle();
    long sum = 0, even = 0;
    each(&L, add, &sum);
    settle();
    each(&L, count_even, &even);
    printf("%ld %ld\n", sum, even);
}
