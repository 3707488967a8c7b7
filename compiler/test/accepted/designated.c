// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
int sum_of_two(void) {
    struct node second = {.key = 2, .next = 0};
    struct node first = {.key = 1, .next = &second};
    int total = 0;
    for (const struct node* n = &first; n; n = n->next) total += n->key;
    return total;
}

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
int main(void) {
    for (int key = 0; key < 5; ++key) push(key);
    printf("%d\n", sum_of_two());
}
#endif
