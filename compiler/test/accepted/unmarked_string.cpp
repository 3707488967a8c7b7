// SPDX-License-Identifier: MIT
// RUN: %accept++
// What cannot move stays behind a pointer that is not marked.
#include "marks.h"
#include <string>
struct node {
    const std::string* name;
    int key;
    node* next OBASE_GUIDED;
};
bool named(const node& n, const std::string& name) {
    return n.next == nullptr && *n.name == name;
}

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
static const std::string name = "a name that is kept elsewhere";
static node first{&name, 1, nullptr};
static void grow(int key) { first.next = new node{&name, key, first.next}; }
static int last_named() {
    const node* n = &first;
    while (n->next != nullptr) n = n->next;
    return named(*n, name);
}
int main() {
    for (int key = 0; key < 20; ++key) grow(key);
    std::printf("%d %d\n", last_named(), named(first, name));
}
#endif
