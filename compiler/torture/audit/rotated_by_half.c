// SPDX-License-Identifier: MIT
//
// audit: two-fields: a rotation of a tree that forgets one of its links.
#include "torture.h"
struct tree {
    struct tree* left OBASE_GUIDED;
    struct tree* right OBASE_GUIDED;
    int key;
};
struct set {
    struct tree* root OBASE_GUIDED;
};
static struct set S;
static void put(struct tree** at, int key) {
    while (*at) at = key < (*at)->key ? &(*at)->left : &(*at)->right;
    *at = calloc(1, sizeof **at);
    (*at)->key = key;
}
void insert(struct set* s, int key) { put(&s->root, key); }
void rotate(struct set* s) {
    struct tree* up = s->root->left;
    up->right = s->root; /* what was there belongs to the old root now */
    s->root = up;
}
int leftmost(const struct set* s) {
    const struct tree* t = s->root;
    while (t->left) t = t->left;
    return t->key;
}
int main(void) {
    for (int i = 0; i < 40; i++) insert(&S, i * 7 % 40 + 100);
    insert(&S, 50);
    settle();
    rotate(&S);
    settle();
    printf("%d\n", leftmost(&S));
}
