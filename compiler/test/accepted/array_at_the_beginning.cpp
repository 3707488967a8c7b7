// SPDX-License-Identifier: MIT
// RUN: %accept++
// The address of an object's first member is the object's own: elements of an array there are inside.
#include "marks.h"
struct node {
    unsigned long values[3];
    node* next OBASE_GUIDED;
};
struct list { node* head OBASE_GUIDED; };
unsigned long sum(const list& l, int most) {
    unsigned long all = 0;
    for (const node* n = l.head; n != nullptr; n = n->next) {
        for (const unsigned long v : n->values) all += v;
        for (int i = 0; i < most; ++i) all += n->values[i];
        const unsigned long* first = n->values;
        for (const unsigned long* v = first; v != n->values + 3; ++v) all += *v * static_cast<unsigned long>(v - first);
    }
    return all;
}

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
static list all;
static void push(unsigned long key) {
    node* n = new node{{key, 2, 3}, nullptr};
    n->next = all.head;
    all.head = n;
}
int main() {
    for (unsigned long key = 0; key < 20; ++key) push(key);
    std::printf("%lu %lu\n", sum(all, 2), sum(all, 3));
}
#endif
