// SPDX-License-Identifier: MIT
// RUN: %accept
// Bytes beside the slots.
#include "marks.h"
#include <string.h>
struct node { struct node* next OBASE_GUIDED; unsigned length; char text[64]; };
int node_set(struct node* n, const char* text, unsigned length) {
    if (length > sizeof n->text) return -1;
    memcpy(n->text, text, length);
    n->length = length;
    return 0;
}
int node_is(const struct node* n, const char* text, unsigned length) {
    return n->length == length && memcmp(n->text, text, length) == 0;
}

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct node first;
static int grow(const char* text) {
    struct node* n = calloc(1, sizeof *n);
    int wrong = node_set(n, text, 4);
    n->next = first.next;
    first.next = n;
    return wrong;
}
static int next_is(const char* text) { return node_is(first.next, text, 4); }
int main(void) {
    int wrong = grow("text") + grow("last") + node_set(&first, "here", 4);
    printf("%d %d %d %d\n", wrong, node_is(&first, "here", 4), next_is("last"), next_is("text"));
}
#endif
