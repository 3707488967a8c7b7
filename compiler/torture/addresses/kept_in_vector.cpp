// SPDX-License-Identifier: MIT
//
// refused: An object has one owner
#include "torture.h"

#include <vector>
struct node {
    node* next OBASE_GUIDED = nullptr;
    int key = 0;
};
class book {
  public:
    void add(int key) {
        node* n = new node;
        n->key = key;
        n->next = head_;
        head_ = n;
    }
    void build() {
        for (node* n = head_; n; n = n->next) all_.push_back(n);
    }
    int at(std::size_t i) const { return all_[i]->key; }

  private:
    node* head_ OBASE_GUIDED = nullptr;
    std::vector<node*> all_;
};
int main() {
    book i;
    i.add(3);
    i.build();
    settle();
    std::printf("%d\n", i.at(0));
}
