// SPDX-License-Identifier: MIT
//
// audit: two-fields: a skip list: a node is in its predecessor's field of each level, so it has several owners.
#include "torture.h"
struct node {
    struct node* next[3] OBASE_GUIDED;
    int key;
};
struct list {
    struct node* head[3] OBASE_GUIDED;
};
static struct list L;
void add(struct list* l, int key, int levels) {
    struct node* n = calloc(1, sizeof *n);
    n->key = key;
    for (int i = 0; i < levels; i++) {
        struct node** at = &l->head[i];
        while (*at && (*at)->key < key) at = &(*at)->next[i];
        n->next[i] = *at;
        *at = n;
    }
}
int sum(const struct list* l, int level) {
    int s = 0;
    for (const struct node* n = l->head[level]; n; n = n->next[level]) s += n->key;
    return s;
}
int main(void) {
    for (int i = 0; i < 60; i++) add(&L, i * 7 % 60, i % 3 + 1);
    for (int i = 0; i < 3; i++) {
        settle();
        printf("%d %d %d\n", sum(&L, 0), sum(&L, 1), sum(&L, 2));
    }
}
