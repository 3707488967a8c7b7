// SPDX-License-Identifier: MIT
// RUN: %accept++
// The programmer knows better: no operation, although it takes a node.
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
OBASE_OUTSIDE int key_of(const node& n) { return n.key; }
int use(const node& n) { return key_of(n); }

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
static node first{3, nullptr};
static void grow(int key) { first.next = new node{key, first.next}; }
static int next_key() { return use(*first.next); }
int main() {
    for (int key = 0; key < 5; ++key) grow(key);
    std::printf("%d %d\n", use(first), next_key());
}
#endif
