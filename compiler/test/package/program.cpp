// SPDX-License-Identifier: MIT
//
// Fills a list and a cache whose pointers are marked, has the collector look at them several times,
// and finds all there. Prints how many items were found.
#include "cache.h"

#include <obase/obase.hpp>

#include <cstdio>

#if __has_include(<obase/marked.h>)
#include <obase/marked.h>
#else
#define OBASE_GUIDED __attribute__((annotate("obase::guided")))
#endif

class list {
  public:
    void push(int key) { head_ = new node{key, head_}; }
    bool has(int key) const {
        for (node* n = head_; n != nullptr; n = n->next)
            if (n->key == key) return true;
        return false;
    }

  private:
    struct node {
        int key;
        node* next OBASE_GUIDED;
    };
    node* head_ OBASE_GUIDED = nullptr;
};

namespace {

constexpr int count = 500;
// They end with the process: what they hold is not freed.
list numbers;
cache values;

int intact() {
    int good = 0;
    for (int i = 0; i < count; ++i) {
        int value = 0;
        good += numbers.has(i) && cache_get(&values, i, &value) != 0 && value == -i;
    }
    return good;
}

} // namespace

int main() {
    for (int i = 0; i < count; ++i) {
        numbers.push(i);
        if (cache_put(&values, i, -i) != 0) return 1;
    }
    int good = intact();
    for (int window = 0; window < 4; ++window) {
        obase::runtime::get().collect_now();
        const int now = intact();
        good = now < good ? now : good;
    }
    std::printf("%d of %d found\n", good, count);
    return good == count ? 0 : 1;
}
