// SPDX-License-Identifier: MIT
// RUN: %accept++
// A move constructor by hand: the vector uses it, and the slots are seen.
#include "marks.h"
#include <utility>
#include <vector>
struct node { int key; };
struct bucket {
    node* head OBASE_GUIDED = nullptr;
    bucket() = default;
    bucket(bucket&& from) noexcept : head(from.head) { from.head = nullptr; }
    bucket& operator=(bucket&& from) noexcept {
        node* taken = from.head;
        from.head = nullptr;
        delete head;
        head = taken;
        return *this;
    }
    ~bucket() { delete head; }
};
void grow(std::vector<bucket>& buckets) { buckets.emplace_back(); }

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
static std::vector<bucket> all;
static void fill(int key) { all.back().head = new node{key}; }
static int sum() {
    int keys = 0;
    for (const bucket& b : all) keys += b.head->key;
    return keys;
}
int main() {
    for (int key = 0; key < 20; ++key) {
        grow(all);
        fill(key);
    }
    std::printf("%d\n", sum());
    all.clear();
}
#endif
