// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
#include <string.h>
struct node { int key; struct node* next OBASE_GUIDED; };
void copy(struct node* to, const struct node* from) {
    // CHECK: memcpy_struct.c:[[#@LINE+1]]:{{.*}}error: 'memcpy' copies the bytes of the marked field 'node::next' [obase:bytes]
    memcpy(to, from, sizeof *to);
    // CHECK: note: do it field by field
}
