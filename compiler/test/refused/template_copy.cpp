// SPDX-License-Identifier: MIT
// RUN: %refuse++
// Of a template its instances are looked at.
#include "marks.h"
template <class T> struct node { T key; node* next OBASE_GUIDED; };
template <class T> T peek(const node<T>& n) {
    // CHECK: error: 'node' with the marked field 'node<int>::next' is copied as a whole{{.*}}[obase:struct-copy]
    auto copy = n;
    return copy.key;
}
int use(const node<int>& n) { return peek(n); }
