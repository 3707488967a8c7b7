// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
#include <setjmp.h>
struct node { int key; struct node* next OBASE_GUIDED; };
static jmp_buf out;
int length(const struct node* n) {
    int count = 0;
    // CHECK: error: 'setjmp' in 'length', which is part of an operation, may leave the scope without ending it [obase:jump]
    if (setjmp(out)) return -1;
    for (; n; n = n->next) ++count;
    return count;
}
