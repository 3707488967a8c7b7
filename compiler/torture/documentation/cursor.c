// SPDX-License-Identifier: MIT
//
// refused: global
// A cursor in a static variable.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static struct list L;
static struct node* cursor;
void push(struct list* l, int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = l->head;
    l->head = n;
}
void rewind_list(struct list* l) { cursor = l->head; }
int next_key(void) {
    if (!cursor) return -1;
    int key = cursor->key;
    cursor = cursor->next;
    return key;
}
int main(void) {
    for (int i = 0; i < 20; i++) push(&L, i);
    rewind_list(&L);
    int s = 0;
    for (int key; (key = next_key()) >= 0; s += key) settle();
    printf("%d\n", s);
}
