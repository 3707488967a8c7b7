// SPDX-License-Identifier: MIT
// RUN: %accept++
// Functions of the program that are called like those of the C library.
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
namespace io {
int read(int, node* n, int more) { return n->key + more; }
int write(node* n) { return n->next == nullptr; }
}
int use(node* n) { return io::read(0, n, 1) + io::write(n); }

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
static node first{1, nullptr};
static void grow(int key) { first.next = new node{key, first.next}; }
static int next_use() { return use(first.next); }
int main() {
    for (int key = 0; key < 5; ++key) grow(key);
    std::printf("%d %d\n", use(&first), next_use());
}
#endif
