// SPDX-License-Identifier: MIT
// RUN: %obase-clang++ -c -O0 --obase-visibility=%t.txt -o %t.o %s
// RUN: %filecheck --input-file=%t.txt %s
// The source decides before the rules do.
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
struct list { node* head OBASE_GUIDED; };
OBASE_INTERNAL int depth(const node* n) { return n == nullptr ? 0 : 1 + depth(n->next); }
OBASE_OUTSIDE int loop(list* l) { return l == nullptr; }
static OBASE_ENTRY int first(const list* l) { return l->head != nullptr ? l->head->key : 0; }
int use(list* l) { return depth(l->head) + first(l) + loop(l); }
// CHECK-NOT: loop
// CHECK: internal	depth(const node *)	{{.*}}	the source says so
// CHECK-NOT: loop
// CHECK: entry	first(const list *)	{{.*}}	the source says so
// CHECK: entry	use(list *)
