// SPDX-License-Identifier: MIT
//
// right: a tree by first child and next sibling, built and pruned.
#include "torture.h"
struct node {
    struct node* child OBASE_GUIDED;
    struct node* sibling OBASE_GUIDED;
    int key;
};
struct tree {
    struct node* root OBASE_GUIDED;
};
static struct tree T;
static struct node* find(struct node* n, int key) {
    for (; n; n = n->sibling) {
        if (n->key == key) return n;
        struct node* below = find(n->child, key);
        if (below) return below;
    }
    return NULL;
}
void add(struct tree* t, int parent, int key) {
    struct node* n = calloc(1, sizeof *n);
    n->key = key;
    struct node* p = find(t->root, parent);
    if (p) {
        n->sibling = p->child;
        p->child = n;
    } else {
        n->sibling = t->root;
        t->root = n;
    }
}
static void drop(struct node* n) {
    while (n) {
        struct node* next = n->sibling;
        drop(n->child);
        free(n);
        n = next;
    }
}
void prune(struct tree* t, int key) {
    struct node* n = find(t->root, key);
    if (!n) return;
    drop(n->child);
    n->child = NULL;
}
static int sum(const struct node* n) { return n ? n->key + sum(n->child) + sum(n->sibling) : 0; }
int total(const struct tree* t) { return sum(t->root); }
int main(void) {
    for (int i = 1; i < 120; i++) add(&T, i / 3, i);
    settle();
    printf("%d\n", total(&T));
    prune(&T, 5);
    settle();
    printf("%d\n", total(&T));
}
