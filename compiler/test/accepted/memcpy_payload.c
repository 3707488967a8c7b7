// SPDX-License-Identifier: MIT
// RUN: %accept
// Bytes beside the slots.
#include "marks.h"
#include <string.h>
struct node { struct node* next OBASE_GUIDED; unsigned length; char text[64]; };
int node_set(struct node* n, const char* text, unsigned length) {
    if (length > sizeof n->text) return -1;
    memcpy(n->text, text, length);
    n->length = length;
    return 0;
}
int node_is(const struct node* n, const char* text, unsigned length) {
    return n->length == length && memcmp(n->text, text, length) == 0;
}
