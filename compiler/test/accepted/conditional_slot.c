// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
struct tree { int key; struct tree* left OBASE_GUIDED; struct tree* right OBASE_GUIDED; };
void attach(struct tree* t, struct tree* child) {
    struct tree** side = child->key < t->key ? &t->left : &t->right;
    if (!*side) *side = child;
}

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct tree top = {50, 0, 0};
static void grow(int key) {
    struct tree* t = calloc(1, sizeof *t);
    t->key = key;
    attach(&top, t);
}
static int sum(void) { return top.left->key + top.right->key; }
int main(void) {
    grow(10);
    grow(90);
    printf("%d\n", sum());
}
#endif
