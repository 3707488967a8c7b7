// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
#include <string.h>
struct node { int key; struct node* next OBASE_GUIDED; };
void fill(struct node* n, int with) {
    // CHECK: error: 'memset' writes something other than zeros over the marked field 'node::next' [obase:bytes]
    memset(n, with, sizeof *n);
}
