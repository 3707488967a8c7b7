// SPDX-License-Identifier: MIT
// RUN: %refuse
// Two slots that hold the same address may have different words.
#include "marks.h"
#include <string.h>
struct node { long key; struct node* next OBASE_GUIDED; };
int same(const struct node* a, const struct node* b) {
    // CHECK: error: 'memcmp' compares the bytes of the marked field 'node::next' [obase:bytes]
    return memcmp(a, b, sizeof *a) == 0;
}
