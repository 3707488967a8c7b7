// SPDX-License-Identifier: MIT
// RUN: %accept
// One owner each: the tail is found by walking.
#include "marks.h"
#include <stdlib.h>
struct node { int key; struct node* next OBASE_GUIDED; };
struct queue { struct node* first OBASE_GUIDED; };
void queue_put(struct queue* q, int key) {
    struct node* n = calloc(1, sizeof *n);
    if (!n) return;
    n->key = key;
    struct node** link = &q->first;
    while (*link) link = &(*link)->next;
    *link = n;
}
int queue_take(struct queue* q, int* key) {
    struct node* n = q->first;
    if (!n) return 0;
    q->first = n->next;
    n->next = 0;
    *key = n->key;
    free(n);
    return 1;
}
