// SPDX-License-Identifier: MIT
// RUN: %accept
// Packed, but the slot is where it should be.
#include "marks.h"
struct __attribute__((packed, aligned(8))) node {
    struct node* next OBASE_GUIDED;
    char kind;
    int key;
};
int last(const struct node* n) { return n->next == 0; }
