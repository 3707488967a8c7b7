// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
class list {
  public:
    list() = default;
    list(const list&) = delete;
    list& operator=(const list&) = delete;
    ~list() { clear(); }
    void push(int key) { head_ = new node(key, head_); }
    bool has(int key) const { return find(key) != nullptr; }
    void clear() {
        while (head_ != nullptr) {
            node* n = head_;
            head_ = n->next;
            delete n;
        }
    }
  private:
    struct node {
        int key;
        node* next OBASE_GUIDED;
        node(int k, node* n) : key(k), next(n) {}
    };
    node* find(int key) const {
        for (node* n = head_; n != nullptr; n = n->next)
            if (n->key == key) return n;
        return nullptr;
    }
    node* head_ OBASE_GUIDED = nullptr;
};
int main() {
    list l;
    l.push(1);
    return l.has(1) ? 0 : 1;
}
