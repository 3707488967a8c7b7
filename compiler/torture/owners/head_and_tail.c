// SPDX-License-Identifier: MIT
//
// refused: an object has one owner
// A queue with a head and a tail, both marked.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct queue {
    struct node* head OBASE_GUIDED;
    struct node* tail OBASE_GUIDED;
};
void put(struct queue* q, int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = NULL;
    if (q->tail)
        q->tail->next = n;
    else
        q->head = n;
    q->tail = n;
}
int main(void) { puts(""); }
