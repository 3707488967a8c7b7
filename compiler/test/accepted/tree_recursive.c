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
