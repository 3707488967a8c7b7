// SPDX-License-Identifier: MIT
//
// right: a tree whose nodes own their children by unique_ptr.
#include "torture.h"

#include <memory>
class tree {
  public:
    bool insert(int key) {
        std::unique_ptr<node>* at = &root_;
        while (*at) {
            if ((*at)->key == key) return false;
            at = key < (*at)->key ? &(*at)->left : &(*at)->right;
        }
        *at = std::make_unique<node>(key);
        return true;
    }
    bool has(int key) const {
        const node* n = root_.get();
        while (n && n->key != key) n = key < n->key ? n->left.get() : n->right.get();
        return n != nullptr;
    }
    void clear() { root_.reset(); }

  private:
    struct node {
        explicit node(int k) : key(k) {}
        int key;
        std::unique_ptr<node> left OBASE_GUIDED;
        std::unique_ptr<node> right OBASE_GUIDED;
    };
    std::unique_ptr<node> root_ OBASE_GUIDED;
};
int main() {
    tree t;
    for (int i = 0; i < 200; ++i) t.insert(i * 71 % 300);
    settle();
    int found = 0;
    for (int i = 0; i < 300; ++i) found += t.has(i);
    std::printf("%d\n", found);
    t.clear();
    t.insert(4);
    settle();
    std::printf("%d %d\n", t.has(4), t.has(5));
}
