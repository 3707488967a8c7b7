// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
struct tree { int key; struct tree* left OBASE_GUIDED; struct tree* right OBASE_GUIDED; };
void attach(struct tree* t, struct tree* child) {
    struct tree** side = child->key < t->key ? &t->left : &t->right;
    if (!*side) *side = child;
}
