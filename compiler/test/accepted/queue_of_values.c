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

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
static struct queue all;
int main(void) {
    int key, sum = 0;
    for (int i = 0; i < 20; ++i) queue_put(&all, i);
    for (int i = 0; i < 10 && queue_take(&all, &key); ++i) sum = 3 * sum + key;
    for (int i = 0; i < 20; ++i) queue_put(&all, i);
    while (queue_take(&all, &key)) sum = (3 * sum + key) % 1000003;
    printf("%d\n", sum);
}
#endif
