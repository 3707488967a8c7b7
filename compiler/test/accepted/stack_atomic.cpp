// SPDX-License-Identifier: MIT
// RUN: %accept++
// Treiber's stack; the nodes that are taken are not freed here.
#include "marks.h"
#include <atomic>
class stack {
  public:
    void push(int key) {
        node* n = new node{key, nullptr};
        node* top = top_.load(std::memory_order_relaxed);
        do n->next.store(top, std::memory_order_relaxed);
        while (!top_.compare_exchange_weak(top, n, std::memory_order_release,
                                           std::memory_order_relaxed));
    }
    bool empty() const { return top_.load(std::memory_order_acquire) == nullptr; }
    void clear() { top_.exchange(nullptr); }
  private:
    struct node {
        int key;
        std::atomic<node*> next OBASE_GUIDED;
    };
    std::atomic<node*> top_ OBASE_GUIDED{nullptr};
};
int main() {
    static stack s;
    s.push(1);
    return s.empty() ? 1 : 0;
}
