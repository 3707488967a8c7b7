// SPDX-License-Identifier: MIT
//
// right: a stack; pop takes the link of what it frees.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    long key;
};
struct stack {
    struct node* top OBASE_GUIDED;
};
static struct stack S;
void push(struct stack* s, long key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = s->top;
    s->top = n;
}
long pop(struct stack* s) {
    struct node* n = s->top;
    if (!n) return -1;
    long key = n->key;
    s->top = n->next;
    free(n);
    return key;
}
int main(void) {
    for (int i = 0; i < 100; i++) push(&S, i);
    for (int r = 0; r < 10; r++) {
        settle();
        long sum = 0;
        for (int i = 0; i < 8; i++) sum += pop(&S);
        printf("%ld\n", sum);
    }
}
