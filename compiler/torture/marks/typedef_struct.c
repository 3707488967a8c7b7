// SPDX-License-Identifier: MIT
//
// right: a typedef of a struct without a name, with marks from a file.
// marks: typedef_struct.marks
#include "torture.h"
typedef struct node node;
struct node {
    node* next;
    int key;
};
typedef struct {
    node* head;
} list;
static list L;
void push(list* l, int key) {
    node* n = malloc(sizeof *n);
    n->key = key;
    n->next = l->head;
    l->head = n;
}
int sum(const list* l) {
    int s = 0;
    for (const node* n = l->head; n; n = n->next) s += n->key;
    return s;
}
int main(void) {
    for (int i = 0; i < 60; i++) push(&L, i);
    settle();
    printf("%d\n", sum(&L));
}
