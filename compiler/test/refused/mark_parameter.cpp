// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct node { int key; };
// CHECK: error: a parameter is marked{{.*}}[obase:mark-place]
int key_of(const node* n OBASE_GUIDED) { return n->key; }
