// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
struct node { int key; int weight; node* next OBASE_GUIDED; };
int sum(const node* n, int node::* of) {
    int total = 0;
    for (; n != nullptr; n = n->next) total += n->*of;
    return total;
}
int keys(const node* n) { return sum(n, &node::key); }
int weights(const node* n) { return sum(n, &node::weight); }

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
static node first{1, 2, nullptr};
static void grow(int key) { first.next = new node{key, 10 * key, first.next}; }
int main() {
    for (int key = 0; key < 20; ++key) grow(key);
    std::printf("%d %d\n", keys(&first), weights(&first));
}
#endif
