// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
#include <stdio.h>
struct node { int key; struct node* next OBASE_GUIDED; };
int save(const struct node* n, FILE* to) {
    // CHECK: error: 'fwrite' reads or writes the bytes of the marked field 'node::next' [obase:bytes]
    return fwrite(n, sizeof *n, 1, to) == 1;
}
