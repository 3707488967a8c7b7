// SPDX-License-Identifier: MIT
// RUN: %accept
// Packed, but the slot is where it should be.
#include "marks.h"
struct __attribute__((packed, aligned(8))) node {
    struct node* next OBASE_GUIDED;
    char kind;
    int key;
};
int last(const struct node* n) { return n->next == 0; }

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct node first;
static void grow(int key) {
    struct node* n = malloc(sizeof *n);
    n->kind = 'n';
    n->key = key;
    n->next = first.next;
    first.next = n;
}
static int sum(void) {
    int all = 0;
    for (const struct node* n = first.next; n; n = n->next) all += n->key + last(n);
    return all;
}
int main(void) {
    for (int key = 0; key < 20; ++key) grow(key);
    printf("%d %d\n", sum(), last(&first));
}
#endif
