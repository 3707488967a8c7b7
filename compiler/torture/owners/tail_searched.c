// SPDX-License-Identifier: MIT
//
// right: the tail is searched for in each operation.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct queue {
    struct node* head OBASE_GUIDED;
};
static struct queue Q;
void put(struct queue* q, int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = NULL;
    struct node** at = &q->head;
    while (*at) at = &(*at)->next;
    *at = n;
}
int take(struct queue* q) {
    struct node* n = q->head;
    if (!n) return -1;
    int key = n->key;
    q->head = n->next;
    free(n);
    return key;
}
int main(void) {
    long sum = 0;
    for (int i = 0; i < 120; i++) {
        put(&Q, i);
        if (i % 3 == 0) sum = sum * 3 % 10007 + take(&Q);
        if (i % 30 == 0) settle();
    }
    settle();
    for (int key; (key = take(&Q)) >= 0;) sum = sum * 3 % 10007 + key;
    printf("%ld\n", sum);
}
