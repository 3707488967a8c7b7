// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
void reset(struct node* n, int key) {
    // CHECK: error: 'node' with the marked field 'node::next' is copied as a whole{{.*}}[obase:struct-copy]
    *n = (struct node){.key = key};
}
