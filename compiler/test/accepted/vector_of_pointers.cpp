// SPDX-License-Identifier: MIT
// RUN: %accept++
// The vector moves pointers to the structs, not the structs.
#include "marks.h"
#include <memory>
#include <vector>
struct node { int key; };
struct bucket { node* head OBASE_GUIDED = nullptr; };
class table {
  public:
    void fill(std::size_t at) { buckets_[at]->head = new node{1}; }
    void grow() { buckets_.push_back(std::make_unique<bucket>()); }
    std::size_t used() const {
        std::size_t count = 0;
        for (const auto& b : buckets_) count += b->head != nullptr;
        return count;
    }
  private:
    std::vector<std::unique_ptr<bucket>> buckets_;
};
std::size_t use(table& t) {
    t.grow();
    return t.used();
}

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
int main() {
    static table t;
    for (int i = 0; i < 20; ++i) {
        use(t);
        t.fill(static_cast<std::size_t>(i));
    }
    std::printf("%zu\n", use(t));
}
#endif
