// SPDX-License-Identifier: MIT
//
// audit: stale-use: an address that was printed into a text comes back out of it.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static struct list L;
static char kept[40];
void push(struct list* l, int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = l->head;
    l->head = n;
}
void keep(const struct list* l) { snprintf(kept, sizeof kept, "%p", (void*)l->head); }
int key(void) {
    void* n = NULL;
    sscanf(kept, "%p", &n);
    return ((struct node*)n)->key;
}
int main(void) {
    for (int i = 0; i < 50; i++) push(&L, i);
    keep(&L);
    settle();
    printf("%d\n", key());
}
