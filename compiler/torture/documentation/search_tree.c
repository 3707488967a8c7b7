// SPDX-License-Identifier: MIT
//
// right: a binary tree with insert, search and removal by recursion.
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
static void insert_at(struct tree** at, int key) {
    if (!*at) {
        struct tree* t = malloc(sizeof *t);
        t->left = t->right = NULL;
        t->key = key;
        *at = t;
    } else if (key < (*at)->key)
        insert_at(&(*at)->left, key);
    else if (key > (*at)->key)
        insert_at(&(*at)->right, key);
}
void insert(struct set* s, int key) { insert_at(&s->root, key); }
static void remove_at(struct tree** at, int key) {
    struct tree* t = *at;
    if (!t) return;
    if (key < t->key) {
        remove_at(&t->left, key);
    } else if (key > t->key) {
        remove_at(&t->right, key);
    } else if (!t->left) {
        *at = t->right;
        free(t);
    } else if (!t->right) {
        *at = t->left;
        free(t);
    } else {
        struct tree* least = t->right;
        while (least->left) least = least->left;
        t->key = least->key;
        remove_at(&t->right, t->key);
    }
}
void erase(struct set* s, int key) { remove_at(&s->root, key); }
static int sum_of(const struct tree* t) {
    return t ? t->key + sum_of(t->left) + sum_of(t->right) : 0;
}
int sum(const struct set* s) { return sum_of(s->root); }
int main(void) {
    for (int i = 0; i < 200; i++) insert(&S, i * 73 % 200);
    for (int i = 0; i < 200; i += 2) {
        if (i % 40 == 0) settle();
        erase(&S, i);
    }
    settle();
    printf("%d\n", sum(&S));
}
