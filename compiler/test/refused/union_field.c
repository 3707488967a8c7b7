// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { int key; };
// CHECK: error: a union holds the marked field {{.*}}next{{.*}}[obase:union]
union link { struct node* next OBASE_GUIDED; unsigned long word; };
unsigned long word(const union link* l) { return l->word; }
