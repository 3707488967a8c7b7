// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
struct node {
    int key;
    struct { struct node* left OBASE_GUIDED; struct node* right OBASE_GUIDED; };
};
int is_leaf(const struct node* n) { return !n->left && !n->right; }
