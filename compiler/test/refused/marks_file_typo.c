// SPDX-License-Identifier: MIT
// RUN: rm -rf %t && mkdir %t && echo "node::nxet" > %t/marks
// RUN: not %obase-clang --obase-marks=%t/marks -c %s -o %t/o 2>&1 | %filecheck %s
#include "marks.h"
// CHECK: error: 'node' has no field 'nxet', which {{.*}}marks:1 marks [obase:marks-file]
struct node { int key; struct node* next; };
int last(const struct node* n) { return n->next == 0; }
