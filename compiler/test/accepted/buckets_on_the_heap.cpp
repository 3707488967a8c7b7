// SPDX-License-Identifier: MIT
// RUN: %accept++
// Structs with marked fields in memory that the program allocates itself.
#include "marks.h"
#include <cstddef>
struct entry { unsigned key; entry* next OBASE_GUIDED; };
struct bucket { entry* head OBASE_GUIDED; };
class table {
  public:
    explicit table(std::size_t size) : buckets_(new bucket[size]), size_(size) {
        for (std::size_t i = 0; i < size; ++i) buckets_[i].head = nullptr;
    }
    table(const table&) = delete;
    ~table() { delete[] buckets_; }
    bool has(unsigned key) const {
        for (entry* e = buckets_[key % size_].head; e != nullptr; e = e->next)
            if (e->key == key) return true;
        return false;
    }
  private:
    bucket* buckets_;
    std::size_t size_;
};
bool use(unsigned key) {
    table t(16);
    return t.has(key);
}

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
struct filled {
    bucket of[16];
    void put(unsigned key) { of[key % 16].head = new entry{key, of[key % 16].head}; }
    bool has(unsigned key) const {
        for (entry* e = of[key % 16].head; e != nullptr; e = e->next)
            if (e->key == key) return true;
        return false;
    }
};
static filled* all = new filled();
int main() {
    for (unsigned key = 0; key < 100; ++key) all->put(key * 3);
    int found = use(1);
    for (unsigned key = 0; key < 100; ++key) found += all->has(key);
    std::printf("%d\n", found);
}
#endif
