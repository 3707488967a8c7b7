// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %obase-clang -O1 -S -emit-llvm -o %t.ll %s
// RUN: %filecheck --input-file=%t.ll %s
// Fetching ahead is no access: the word's tag bits are masked, and nothing is called.
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
// CHECK-LABEL: @ahead(
// CHECK-NOT: obase_marked_load
// CHECK: and i64 {{.*}}281474976710655
// CHECK-NOT: obase_marked_load
// CHECK: @llvm.prefetch
// CHECK-NOT: obase_marked_load
// CHECK: ret void
void ahead(const struct node* n) { __builtin_prefetch(n->next); }
