// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
#include <array>
#include <cstddef>
struct entry {
    unsigned key;
    int value;
    entry* next OBASE_GUIDED;
};
struct bucket { entry* head OBASE_GUIDED = nullptr; };
class table {
  public:
    bool get(unsigned key, int& value) const {
        for (entry* e = buckets_[key % 64].head; e != nullptr; e = e->next)
            if (e->key == key) {
                value = e->value;
                return true;
            }
        return false;
    }
    void put(unsigned key, int value) {
        bucket& b = buckets_[key % 64];
        entry* e = new entry;
        e->key = key;
        e->value = value;
        e->next = b.head;
        b.head = e;
    }
  private:
    std::array<bucket, 64> buckets_;
};
int main() {
    static table t;
    t.put(1, 2);
    int value = 0;
    return t.get(1, value) && value == 2 ? 0 : 1;
}
