// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
struct node {
    int key;
    struct { struct node* left OBASE_GUIDED; struct node* right OBASE_GUIDED; };
};
int is_leaf(const struct node* n) { return !n->left && !n->right; }

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct node root;
static void grow(int key) {
    struct node* n = calloc(1, sizeof *n);
    n->key = key;
    n->left = root.left;
    root.left = n;
}
static int sum(void) {
    int all = 0;
    for (const struct node* n = root.left; n; n = n->left) all += n->key + is_leaf(n);
    return all;
}
int main(void) {
    for (int key = 0; key < 20; ++key) grow(key);
    printf("%d %d\n", sum(), is_leaf(&root));
}
#endif
