// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
#include <unistd.h>
struct node { int key; struct node* next OBASE_GUIDED; };
int load(struct node* n, int from) {
    // CHECK: error: 'read' reads or writes the bytes of the marked field 'node::next' [obase:bytes]
    return read(from, n, sizeof *n) == sizeof *n;
}
