// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: printf 'item::text\nmakes my_malloc\n' > %t.marks
// RUN: %obase-clang -S -emit-llvm -O0 --obase-marks=%t.marks -o - %s | %filecheck %s
// The program's own malloc in a file that has no marked fields.
#include <stdlib.h>
void* my_malloc(size_t bytes) { return malloc(bytes); }
// CHECK-LABEL: define {{.*}}ptr @my_malloc(
// CHECK: call {{.*}}@malloc(
// CHECK-LABEL: define {{.*}}ptr @my_malloc.obase(
// CHECK: call {{.*}}@obase_marked_malloc(
