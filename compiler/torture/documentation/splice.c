// SPDX-License-Identifier: MIT
//
// right: all nodes of a list go to another one; two heads are exchanged.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static struct list A, B;
void push(struct list* l, int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = l->head;
    l->head = n;
}
void splice(struct list* to, struct list* from) {
    struct node** end = &to->head;
    while (*end) end = &(*end)->next;
    *end = from->head;
    from->head = NULL;
}
void exchange(struct list* a, struct list* b) {
    struct node* t = a->head;
    a->head = b->head;
    b->head = t;
}
int sum(const struct list* l) {
    int s = 0;
    for (const struct node* n = l->head; n; n = n->next) s = s * 3 % 10007 + n->key;
    return s;
}
int main(void) {
    for (int i = 0; i < 50; i++) push(i % 2 ? &A : &B, i);
    settle();
    exchange(&A, &B);
    settle();
    printf("%d %d\n", sum(&A), sum(&B));
    splice(&A, &B);
    settle();
    printf("%d %d\n", sum(&A), sum(&B));
}
