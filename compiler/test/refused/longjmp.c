// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
#include <setjmp.h>
struct node { int key; struct node* next OBASE_GUIDED; };
extern jmp_buf out;
int key_after(const struct node* n) {
    // CHECK: error: 'longjmp' in 'key_after'{{.*}}[obase:jump]
    if (!n->next) longjmp(out, 1);
    return n->next->key;
}
