// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
// CHECK: error: {{.*}}the distance of two managed objects
long distance(const struct node* a, const struct node* b) { return a->next - b->next; }
