// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
struct node {
    struct node* next OBASE_GUIDED;
    int is_number;
    union { long number; char text[8]; } value;
};
long number(const struct node* n) { return n->is_number ? n->value.number : 0; }

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct node first;
static void grow(long value) {
    struct node* n = malloc(sizeof *n);
    n->is_number = (int)value % 2;
    n->value.number = value;
    n->next = first.next;
    first.next = n;
}
static long sum(void) {
    long all = 0;
    for (const struct node* n = first.next; n; n = n->next) all += number(n);
    return all;
}
int main(void) {
    for (int value = 0; value < 20; ++value) grow(value);
    printf("%ld\n", sum());
}
#endif
