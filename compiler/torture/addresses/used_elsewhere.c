// SPDX-License-Identifier: MIT
//
// right: what the other file's function returns is used within the operation.
// with: found_elsewhere/lookup.c
// marks: found_elsewhere/marks
#include "found_elsewhere/list.h"
struct node* lookup(struct list* l, int key);
int find(struct list* l, int key, struct node** out);
void push(struct list* l, int key);
static struct list L;
void keep(struct list* l, int key) {
    struct node *n, *m = lookup(l, key + 1);
    if (find(l, key, &n) && m) n->key += 1000 * m->key;
}
int sum(struct list* l) {
    int s = 0;
    for (const struct node* n = l->head; n; n = n->next) s += n->key;
    return s;
}
int main(void) {
    for (int i = 0; i < 50; i++) push(&L, i);
    settle();
    keep(&L, 20);
    settle();
    printf("%d\n", sum(&L));
}
