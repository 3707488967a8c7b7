// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
#include <stdlib.h>
struct tree { int key; struct tree* left OBASE_GUIDED; struct tree* right OBASE_GUIDED; };
struct root { struct tree* top OBASE_GUIDED; };
static int height(const struct tree* t) {
    if (!t) return 0;
    int l = height(t->left), r = height(t->right);
    return 1 + (l > r ? l : r);
}
static void destroy(struct tree* t) {
    if (!t) return;
    destroy(t->left);
    destroy(t->right);
    free(t);
}
int root_height(const struct root* r) { return height(r->top); }
void root_clear(struct root* r) {
    destroy(r->top);
    r->top = 0;
}

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
static struct root all;
static void insert(int key) {
    struct tree** at = &all.top;
    while (*at) at = key < (*at)->key ? &(*at)->left : &(*at)->right;
    *at = calloc(1, sizeof **at);
    (*at)->key = key;
}
int main(void) {
    for (int i = 1; i < 40; ++i) insert(i * 17 % 41);
    printf("%d\n", root_height(&all));
    root_clear(&all);
    printf("%d\n", root_height(&all));
}
#endif
