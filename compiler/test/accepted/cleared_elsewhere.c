// SPDX-License-Identifier: MIT
// RUN: %obase-clang -O1 -S -emit-llvm %s -o - | %filecheck %s
// Slots end that are cleared as bytes in a file that does nothing else with marked fields, or through a
// function of the C library. Memory that has nothing to do with them is cleared as ever.
#include "marks.h"
#include <string.h>
#include <strings.h>
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { long count; struct node* first OBASE_GUIDED; };
// CHECK-LABEL: define {{.*}} @again
// CHECK: call void @obase_marked_forget(ptr {{.*}}, i64 16)
// CHECK: ret void
void again(struct list* l) { memset(l, 0, sizeof *l); }
// CHECK-LABEL: define {{.*}} @checked
// CHECK: call void @obase_marked_forget(ptr {{.*}}, i64 16)
// CHECK: call {{.*}} @__memset_chk
// CHECK: ret void
void checked(struct list* l, size_t room) { __builtin___memset_chk(l, 0, sizeof *l, room); }
// CHECK-LABEL: define {{.*}} @explicitly
// CHECK: call void @obase_marked_forget(ptr {{.*}}, i64 16)
// CHECK: call {{.*}} @explicit_bzero
// CHECK: ret void
void explicitly(struct list* l) { explicit_bzero(l, sizeof *l); }
// CHECK-LABEL: define {{.*}} @other
// CHECK-NOT: obase_marked_forget
// CHECK: ret void
void other(char* text) { memset(text, 0, 100); }
