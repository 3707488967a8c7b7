// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct node { int key; };
struct list { node* head OBASE_GUIDED; };
struct counted_list : list { int count; };
// CHECK: error: 'counted_list' with the marked field 'list::head' is assigned as a whole{{.*}}[obase:struct-copy]
void copy(counted_list& to, const counted_list& from) { to = from; }
