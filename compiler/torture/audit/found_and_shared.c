// SPDX-License-Identifier: MIT
//
// audit: two-fields: what is used most is found in one list and put into another, and stays in the first.
#include "list.h"
struct most {
    struct node* used OBASE_GUIDED;
};
static struct list L;
static struct most M;
static struct node* find(struct list* l, int key) {
    struct node* n = l->head;
    while (n && n->key != key) n = n->next;
    return n;
}
void use(struct list* l, struct most* m, int key) { m->used = find(l, key); }
int main(void) {
    for (int i = 0; i < 30; i++) push(&L, i);
    use(&L, &M, 12);
    settle();
    printf("%ld\n", sum(&L));
}
