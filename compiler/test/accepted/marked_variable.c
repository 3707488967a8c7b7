// SPDX-License-Identifier: MIT
// RUN: %accept --obase-visibility=%t.txt
// RUN: %filecheck %s < %t.txt
// Variables of the file alone may be marked; the functions that name them are operations.
#include "marks.h"
#include <stdlib.h>
struct node { struct node* next OBASE_GUIDED; int key; };
static struct node* head OBASE_GUIDED;
static char** lines OBASE_GUIDED;
// CHECK: entry push(int) push {{.*}} names the marked field 'node::next'
void push(int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = head;
    head = n;
}
// CHECK: entry first_line() first_line {{.*}} names the marked variable 'lines'
int first_line(void) { return lines ? lines[0][0] : 0; }

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
static void add_lines(void) {
    lines = malloc(2 * sizeof *lines);
    lines[0] = malloc(8);
    lines[0][0] = 'x';
    lines[1] = malloc(8);
}
static int sum(void) {
    int all = 0;
    for (const struct node* n = head; n; n = n->next) all += n->key;
    return all;
}
int main(void) {
    int none = first_line();
    for (int key = 0; key < 20; ++key) push(key);
    add_lines();
    printf("%d %d %d\n", none, first_line(), sum());
}
#endif
