// SPDX-License-Identifier: MIT
//
// refused: global variable
// The function is found in a table.
#include "torture.h"
struct node {
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static const struct node* kept;
static void keep(const struct node* n) { kept = n; }
static void show(const struct node* n) { printf("%d\n", n->key); }
static void (*const visits[])(const struct node*) = {show, keep};
void visit(const struct list* l, int which) { visits[which](l->head); }
int main(void) { puts(""); }
