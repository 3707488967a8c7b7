// SPDX-License-Identifier: MIT
//
// right: an array of addresses in the frame, as a stack.
#include "torture.h"
struct node {
    struct node* left OBASE_GUIDED;
    struct node* right OBASE_GUIDED;
    int key;
};
struct tree {
    struct node* root OBASE_GUIDED;
};
static struct tree T;
void insert(struct tree* t, int key) {
    struct node** at = &t->root;
    while (*at) at = key < (*at)->key ? &(*at)->left : &(*at)->right;
    *at = calloc(1, sizeof **at);
    (*at)->key = key;
}
int in_order(const struct tree* t) {
    const struct node* path[64];
    int depth = 0, last = -1, ordered = 1;
    for (const struct node* n = t->root; n || depth;) {
        while (n) {
            path[depth++] = n;
            n = n->left;
        }
        n = path[--depth];
        ordered &= n->key > last;
        last = n->key;
        n = n->right;
    }
    return ordered;
}
int main(void) {
    for (int i = 0; i < 100; i++) insert(&T, i * 61 % 101);
    settle();
    printf("%d\n", in_order(&T));
}
