// SPDX-License-Identifier: MIT
//
// right: a treap, whose rotations have an object in two fields for a while.
#include "torture.h"
class treap {
    struct node {
        int key;
        unsigned priority;
        node* left OBASE_GUIDED;
        node* right OBASE_GUIDED;
    };
    node* root_ OBASE_GUIDED = nullptr;
    unsigned seed_ = 7;

    void insert(node*& at, int key) {
        if (at == nullptr) {
            seed_ = seed_ * 1664525u + 1013904223u;
            at = new node{key, seed_, nullptr, nullptr};
        } else if (key < at->key) {
            insert(at->left, key);
            if (at->left->priority > at->priority) {
                node* top = at->left;
                at->left = top->right;
                top->right = at;
                at = top;
            }
        } else if (key > at->key) {
            insert(at->right, key);
            if (at->right->priority > at->priority) {
                node* top = at->right;
                at->right = top->left;
                top->left = at;
                at = top;
            }
        }
    }
    static int count(const node* n) {
        return n == nullptr ? 0 : 1 + count(n->left) + count(n->right);
    }

  public:
    void insert(int key) { insert(root_, key); }
    bool has(int key) const {
        const node* n = root_;
        while (n && n->key != key) n = key < n->key ? n->left : n->right;
        return n != nullptr;
    }
    int size() const { return count(root_); }
};
int main() {
    treap t;
    for (int i = 0; i < 300; ++i) {
        t.insert(i * 91 % 301);
        if (i % 60 == 0) settle();
    }
    settle();
    int found = 0;
    for (int i = 0; i < 310; ++i) found += t.has(i);
    std::printf("%d %d\n", found, t.size());
}
