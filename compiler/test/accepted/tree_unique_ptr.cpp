// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
#include <memory>
class tree {
  public:
    void insert(int key) {
        std::unique_ptr<node>* at = &root_;
        while (*at) at = key < (*at)->key ? &(*at)->left : &(*at)->right;
        *at = std::make_unique<node>(key);
    }
    bool has(int key) const {
        const node* n = root_.get();
        while (n != nullptr && n->key != key) n = key < n->key ? n->left.get() : n->right.get();
        return n != nullptr;
    }
  private:
    struct node {
        int key;
        std::unique_ptr<node> left OBASE_GUIDED;
        std::unique_ptr<node> right OBASE_GUIDED;
        explicit node(int k) : key(k) {}
    };
    std::unique_ptr<node> root_ OBASE_GUIDED;
};
int main() {
    tree t;
    t.insert(3);
    return t.has(3) ? 0 : 1;
}
