// SPDX-License-Identifier: MIT
// RUN: %accept
// Jumps in functions that are no operations.
#include "marks.h"
#include <setjmp.h>
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
int list_empty(const struct list* l) { return l->head == 0; }
static jmp_buf out;
void give_up(void) { longjmp(out, 1); }
int guarded(int (*work)(void)) { return setjmp(out) ? -1 : work(); }

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct list all;
static void push(int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = all.head;
    all.head = n;
}
static int work(void) {
    if (list_empty(&all)) give_up();
    return 1;
}
int main(void) {
    int none = guarded(work);
    for (int key = 0; key < 20; ++key) push(key);
    printf("%d %d\n", none, guarded(work));
}
#endif
