// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
// CHECK: error: 'node' with the marked field 'node::next' is assigned as a whole{{.*}}[obase:struct-copy]
void copy(node& to, const node& from) { to = from; }
