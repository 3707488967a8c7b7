// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
#include <utility>
struct node { int key; node* next OBASE_GUIDED; };
class list {
  public:
    void clear() {
        node* n = std::exchange(head_, nullptr);
        while (n != nullptr) delete std::exchange(n, n->next);
    }
    void swap(list& other) { std::swap(head_, other.head_); }
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
void use(list& a, list& b) {
    a.swap(b);
    a.clear();
}
