// SPDX-License-Identifier: MIT
//
// right: a new object goes into one of two fields.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct pair {
    struct node* even OBASE_GUIDED;
    struct node* odd OBASE_GUIDED;
};
static struct pair P;
void add(struct pair* p, int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    if (key % 2) {
        n->next = p->odd;
        p->odd = n;
    } else {
        n->next = p->even;
        p->even = n;
    }
}
long sum(const struct pair* p) {
    long s = 0;
    for (const struct node* n = p->even; n; n = n->next) s += n->key;
    for (const struct node* n = p->odd; n; n = n->next) s -= n->key;
    return s;
}
int main(void) {
    for (int i = 0; i < 80; i++) add(&P, i);
    settle();
    printf("%ld\n", sum(&P));
}
