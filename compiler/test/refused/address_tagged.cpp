// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse++
// Harris' mark in the lowest bit.
#include "marks.h"
#include <cstdint>
struct node { int key; node* next OBASE_GUIDED; };
void remove(node* n) {
    // CHECK: error:
    n->next = reinterpret_cast<node*>(reinterpret_cast<std::uintptr_t>(n->next) | 1);
}
