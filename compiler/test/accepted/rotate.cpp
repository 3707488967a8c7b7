// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
struct tree { int key; tree* left OBASE_GUIDED; tree* right OBASE_GUIDED; };
struct root { tree* top OBASE_GUIDED; };
void rotate_right(root& r) {
    tree* a = r.top;
    tree* b = a->left;
    a->left = b->right;
    b->right = a;
    r.top = b;
}
