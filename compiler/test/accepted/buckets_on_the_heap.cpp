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
