// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
#include <string.h>
struct node { int key; struct node* next OBASE_GUIDED; };
void poison(struct node* n) {
    // CHECK: error: 'memset' writes something other than zeros over the marked field 'node::next' [obase:bytes]
    memset(n, 0xdd, sizeof *n);
}
