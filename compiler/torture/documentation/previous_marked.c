// SPDX-License-Identifier: MIT
//
// refused: an object has one owner
// A doubly linked list with both links marked.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    struct node* prev OBASE_GUIDED;
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static struct list L;
void push(struct list* l, int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->prev = NULL;
    n->next = l->head;
    if (n->next) n->next->prev = n;
    l->head = n;
}
int there_and_back(const struct list* l) {
    int s = 0;
    const struct node* last = NULL;
    for (const struct node* n = l->head; n; n = n->next) {
        s += n->key;
        last = n;
    }
    for (; last; last = last->prev) s -= last->key;
    return s;
}
int main(void) {
    for (int i = 0; i < 80; i++) push(&L, i);
    for (int r = 0; r < 3; r++) {
        settle();
        printf("%d\n", there_and_back(&L));
    }
}
