// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
#include <string.h>
struct tree { int key; struct tree* child[2] OBASE_GUIDED; };
void take_children(struct tree* to, struct tree* from) {
    // CHECK: error: 'memcpy' copies the bytes of the marked field 'tree::child' [obase:bytes]
    memcpy(to->child, from->child, sizeof to->child);
}
