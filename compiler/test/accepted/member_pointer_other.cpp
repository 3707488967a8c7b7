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
