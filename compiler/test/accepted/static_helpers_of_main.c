// SPDX-License-Identifier: MIT
// RUN: %accept
// Functions with internal linkage that main() uses are operations all the same.
#include "marks.h"
#include <stdlib.h>
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
static struct list all;
static void push(int key) {
    struct node* n = malloc(sizeof *n);
    if (!n) abort();
    n->key = key;
    n->next = all.head;
    all.head = n;
}
static int sum(void) {
    int total = 0;
    for (struct node* n = all.head; n; n = n->next) total += n->key;
    return total;
}
int main(void) {
    push(1);
    push(2);
    return sum() == 3 ? 0 : 1;
}
