// SPDX-License-Identifier: MIT
//
// right, still: an operation is left by a jump whose setjmp is in a unit without the passes, so it never ends.
// plain: plain/jump.c
#include "list.h"
void fail(int when);
int tried(void (*f)(struct list*, struct list*), struct list* a, struct list* b);
static struct list A, B;
void take_over(struct list* to, struct list* from) {
    struct node* n = from->head;
    to->head = n;
    fail(n->key == 29);
    from->head = NULL;
}
int main(void) {
    for (int i = 0; i < 30; i++) push(&A, i);
    settle();
    printf("%d\n", tried(take_over, &B, &A));
    settle();
    printf("%ld\n", sum(&A));
}
