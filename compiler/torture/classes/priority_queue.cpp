// SPDX-License-Identifier: MIT
//
// right: a leftist heap, merged by recursion.
#include "torture.h"

#include <utility>
class heap {
    struct node {
        int key, rank;
        node* left OBASE_GUIDED;
        node* right OBASE_GUIDED;
    };
    node* root_ OBASE_GUIDED = nullptr;
    static int rank(const node* n) { return n ? n->rank : 0; }
    static node* merge(node* a, node* b) {
        if (!a) return b;
        if (!b) return a;
        if (b->key < a->key) std::swap(a, b);
        a->right = merge(a->right, b);
        if (rank(a->left) < rank(a->right)) std::swap(a->left, a->right);
        a->rank = rank(a->right) + 1;
        return a;
    }

  public:
    void push(int key) { root_ = merge(root_, new node{key, 1, nullptr, nullptr}); }
    int pop() {
        node* top = root_;
        if (!top) return -1;
        const int key = top->key;
        root_ = merge(top->left, top->right);
        delete top;
        return key;
    }
};
int main() {
    heap h;
    long s = 0;
    for (int i = 0; i < 200; ++i) {
        h.push(i * 37 % 200);
        if (i % 3 == 0) s = s * 3 % 10007 + h.pop();
        if (i % 50 == 0) settle();
    }
    for (int k; (k = h.pop()) >= 0;) s = s * 3 % 10007 + k;
    std::printf("%ld\n", s);
}
