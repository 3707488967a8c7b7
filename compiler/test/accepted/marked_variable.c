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
