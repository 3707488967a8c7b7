// SPDX-License-Identifier: MIT
// RUN: %accept
// The offset of a field that is not marked.
#include "marks.h"
struct node { struct node* next OBASE_GUIDED; int key; };
size_t place_of_key(void) { return offsetof(struct node, key); }

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct node first;
static void grow(int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = first.next;
    first.next = n;
}
static int next_key(void) { return first.next->key; }
int main(void) {
    for (int key = 0; key < 5; ++key) grow(key);
    printf("%zu %d\n", place_of_key(), next_key());
}
#endif
