// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
struct node {
    struct node* next OBASE_GUIDED;
    int is_number;
    union { long number; char text[8]; } value;
};
long number(const struct node* n) { return n->is_number ? n->value.number : 0; }
