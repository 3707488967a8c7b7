// SPDX-License-Identifier: MIT
//
// right, still: what a field points to lies in an arena of the program's own, and stays there.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
static struct node arena[100];
static int used;
struct list {
    struct node* head OBASE_GUIDED;
};
static struct list L;
void push(struct list* l, int key) {
    struct node* n = &arena[used++];
    n->key = key;
    n->next = l->head;
    l->head = n;
}
int sum(const struct list* l) {
    int s = 0;
    for (const struct node* n = l->head; n; n = n->next) s += n->key;
    return s;
}
int main(void) {
    for (int i = 0; i < 100; i++) push(&L, i);
    settle();
    printf("%d\n", sum(&L));
}
