// SPDX-License-Identifier: MIT
//
// right: a sorted list changed through the address of the link.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static struct list L;
static struct node** place(struct list* l, int key) {
    struct node** at = &l->head;
    while (*at && (*at)->key < key) at = &(*at)->next;
    return at;
}
int insert(struct list* l, int key) {
    struct node** at = place(l, key);
    if (*at && (*at)->key == key) return 0;
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = *at;
    *at = n;
    return 1;
}
int erase(struct list* l, int key) {
    struct node** at = place(l, key);
    struct node* n = *at;
    if (!n || n->key != key) return 0;
    *at = n->next;
    free(n);
    return 1;
}
void show(const struct list* l) {
    for (const struct node* n = l->head; n; n = n->next) printf("%d ", n->key);
    puts("");
}
int main(void) {
    for (int i = 0; i < 50; i++) insert(&L, i * 37 % 50);
    settle();
    for (int i = 0; i < 50; i += 3) erase(&L, i);
    settle();
    show(&L);
    printf("%d %d\n", insert(&L, 3), insert(&L, 4));
}
