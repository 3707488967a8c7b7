// SPDX-License-Identifier: MIT
//
// right: a queue of two stacks; what one has the other has not.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct queue {
    struct node* in OBASE_GUIDED;
    struct node* out OBASE_GUIDED;
};
static struct queue Q;
void put(struct queue* q, int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = q->in;
    q->in = n;
}
int take(struct queue* q) {
    if (!q->out)
        while (q->in) {
            struct node* n = q->in;
            q->in = n->next;
            n->next = q->out;
            q->out = n;
        }
    struct node* n = q->out;
    if (!n) return -1;
    int key = n->key;
    q->out = n->next;
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
    for (int key; (key = take(&Q)) >= 0;) sum = sum * 3 % 10007 + key;
    printf("%ld\n", sum);
}
