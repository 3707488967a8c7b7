// SPDX-License-Identifier: MIT
//
// audit: two-fields: a tree whose nodes have a marked parent, a second owner.
#include "torture.h"
struct tree {
    struct tree* left OBASE_GUIDED;
    struct tree* right OBASE_GUIDED;
    struct tree* parent OBASE_GUIDED;
    int key;
};
struct set {
    struct tree* root OBASE_GUIDED;
};
static struct set S;
void insert(struct set* s, int key) {
    struct tree* parent = NULL;
    struct tree** at = &s->root;
    while (*at) {
        parent = *at;
        at = key < parent->key ? &parent->left : &parent->right;
    }
    struct tree* t = calloc(1, sizeof *t);
    t->key = key;
    t->parent = parent;
    *at = t;
}
int depth(const struct set* s, int key) {
    const struct tree* t = s->root;
    while (t && t->key != key) t = key < t->key ? t->left : t->right;
    int d = 0;
    for (; t; t = t->parent) d++;
    return d;
}
int main(void) {
    for (int i = 0; i < 100; i++) insert(&S, i * 37 % 100);
    for (int r = 0; r < 3; r++) {
        settle();
        int s = 0;
        for (int i = 0; i < 100; i++) s += depth(&S, i);
        printf("%d\n", s);
    }
}
