// SPDX-License-Identifier: MIT
//
// right: a copy constructor and an assignment that copy the objects.
#include "torture.h"

#include <utility>
class list {
    struct node {
        int key;
        node* next OBASE_GUIDED;
    };
    node* head_ OBASE_GUIDED = nullptr;

  public:
    list() = default;
    list(const list& other) {
        node** end = &head_;
        for (const node* n = other.head_; n; n = n->next) {
            *end = new node{n->key, nullptr};
            end = &(*end)->next;
        }
    }
    list(list&& other) noexcept : head_(std::exchange(other.head_, nullptr)) {}
    list& operator=(list other) noexcept {
        std::swap(head_, other.head_);
        return *this;
    }
    ~list() {
        while (head_) {
            node* gone = head_;
            head_ = gone->next;
            delete gone;
        }
    }
    void push(int key) { head_ = new node{key, head_}; }
    int sum() const {
        int s = 0;
        for (const node* n = head_; n; n = n->next) s = s * 3 % 10007 + n->key;
        return s;
    }
};
int main() {
    list a;
    for (int i = 0; i < 40; ++i) a.push(i);
    settle();
    list b = a;
    b.push(7);
    settle();
    list c = std::move(a);
    a = b;
    settle();
    std::printf("%d %d %d\n", a.sum(), b.sum(), c.sum());
}
