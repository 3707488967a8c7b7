// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
// What is certain is refused: a new object in a head and a tail. What an operation has found and stores
// into another field may leave the first one elsewhere.
#include "marks.h"
#include <stdlib.h>
struct node { struct node* next OBASE_GUIDED; int key; };
struct queue { struct node* head OBASE_GUIDED; struct node* tail OBASE_GUIDED; };
void put(struct queue* q) {
    struct node* n = calloc(1, sizeof *n);
    if (q->tail)
        q->tail->next = n;
    else
        q->head = n;
    // CHECK: two_owners.c:[[@LINE+1]]:{{.*}}error: obase: a new object is stored into a second marked field
    q->tail = n;
}
void put_and_take_back(struct queue* q) {
    struct node* n = calloc(1, sizeof *n);
    q->tail = n;
    n->next = q->head;
    q->head = n;
    q->tail = NULL;
}
void found(struct queue* q) { q->tail = q->head; }
