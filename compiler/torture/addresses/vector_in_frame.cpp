// SPDX-License-Identifier: MIT
//
// right: a vector of addresses that ends with the operation.
#include "torture.h"

#include <vector>
class tree {
    struct node {
        int key;
        node* left OBASE_GUIDED;
        node* right OBASE_GUIDED;
    };
    node* root_ OBASE_GUIDED = nullptr;

  public:
    void insert(int key) {
        node** at = &root_;
        while (*at) at = key < (*at)->key ? &(*at)->left : &(*at)->right;
        *at = new node{key, nullptr, nullptr};
    }
    long sum() const {
        long s = 0;
        std::vector<const node*> ahead;
        if (root_) ahead.push_back(root_);
        while (!ahead.empty()) {
            const node* n = ahead.back();
            ahead.pop_back();
            s += n->key;
            if (n->left) ahead.push_back(n->left);
            if (n->right) ahead.push_back(n->right);
        }
        return s;
    }
};
int main() {
    tree t;
    for (int i = 0; i < 200; ++i) t.insert(i * 37 % 200);
    settle();
    std::printf("%ld\n", t.sum());
}
