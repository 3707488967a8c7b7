// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
void copy(struct node* to, const struct node* from) {
    // CHECK: error: 'memcpy' copies the bytes of the marked field 'node::next' [obase:bytes]
    __builtin_memcpy(to, from, sizeof *to);
}
