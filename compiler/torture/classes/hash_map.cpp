// SPDX-License-Identifier: MIT
//
// right: an open hash table of owners, which grows.
#include "torture.h"

#include <memory>
#include <utility>
class map {
    struct entry {
        unsigned key;
        long value;
    };
    struct place {
        std::unique_ptr<entry> held OBASE_GUIDED;
    };
    std::unique_ptr<place[]> places_ = std::make_unique<place[]>(8);
    unsigned size_ = 8, count_ = 0;

    place& find(unsigned key) {
        unsigned i = key * 2654435761u % size_;
        while (places_[i].held && places_[i].held->key != key) i = (i + 1) % size_;
        return places_[i];
    }
    void grow() {
        auto old = std::move(places_);
        const unsigned n = size_;
        size_ *= 2;
        places_ = std::make_unique<place[]>(size_);
        for (unsigned i = 0; i < n; ++i)
            if (old[i].held) {
                place& to = find(old[i].held->key);
                to.held = std::move(old[i].held);
            }
    }

  public:
    void set(unsigned key, long value) {
        if (2 * count_ >= size_) grow();
        place& p = find(key);
        if (!p.held) {
            p.held = std::make_unique<entry>();
            p.held->key = key;
            ++count_;
        }
        p.held->value = value;
    }
    long get(unsigned key) {
        const place& p = find(key);
        return p.held ? p.held->value : -1;
    }
};
int main() {
    map m;
    for (unsigned i = 0; i < 200; ++i) {
        m.set(i * 3, i);
        if (i % 50 == 0) settle();
    }
    settle();
    long s = 0;
    for (unsigned i = 0; i < 620; ++i) s = s * 3 % 10007 + m.get(i);
    std::printf("%ld\n", s);
}
