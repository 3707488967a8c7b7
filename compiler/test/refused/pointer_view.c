// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { struct node* next OBASE_GUIDED; int key; };
// CHECK: pointer_view.c:[[@LINE+1]]:{{.*}}error: a struct with the marked field 'node::next' is looked at as 'void *' [obase:cast]
void* first(struct node* n) { return *(void**)n; }
