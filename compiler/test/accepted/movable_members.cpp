// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
#include <array>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>
struct node {
    std::vector<int> values;
    std::unique_ptr<int> one;
    std::shared_ptr<int> shared;
    std::array<std::pair<int, double>, 3> pairs;
    std::atomic<int> count;
    node* next OBASE_GUIDED;
};
int count(const node& n) { return n.next == nullptr ? n.count.load() : 0; }

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
static node first{};
static void grow(int key) {
    node* n = new node{};
    n->values.assign(5, key);
    n->one = std::make_unique<int>(key);
    n->shared = std::make_shared<int>(key);
    n->count = key;
    n->next = first.next;
    first.next = n;
}
static int sum() {
    int all = 0;
    for (const node* n = first.next; n != nullptr; n = n->next) all += n->values[4] + *n->one + *n->shared + count(*n);
    return all;
}
int main() {
    for (int key = 0; key < 20; ++key) grow(key);
    std::printf("%d %d\n", sum(), count(first));
}
#endif
