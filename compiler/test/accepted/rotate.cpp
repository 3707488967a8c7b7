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

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
static root all;
static void grow(int key) { all.top = new tree{key, all.top, nullptr}; }
static int top() { return all.top->key; }
int main() {
    for (int key = 0; key < 20; ++key) grow(key);
    int sum = 0;
    for (int i = 0; i < 10; ++i) {
        rotate_right(all);
        sum = 3 * sum + top();
    }
    std::printf("%d\n", sum);
}
#endif
