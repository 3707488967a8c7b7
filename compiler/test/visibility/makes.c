// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: printf 'item::text\nmakes my_malloc\nmakes my_copy\nmakes my_text\nmakes their_malloc\n' > %t.marks
// RUN: %obase-clang -S -emit-llvm -O0 --obase-marks=%t.marks -o %t.ll %s
// RUN: %filecheck --input-file=%t.ll %s
// A program's own malloc makes managed memory for those who store it into marked fields, here and in
// other translation units, and ordinary memory for all others.
#include <stdlib.h>
#include <string.h>
struct item { char* text; };
void* their_malloc(size_t bytes);
void* my_malloc(size_t bytes) { return bytes > 1000 ? NULL : malloc(bytes); }
char* my_copy(const char* text) {
    char* copy = my_malloc(strlen(text) + 1);
    return copy ? (strcpy(copy, text), copy) : NULL;
}
char* my_text(const char* text) { return strcpy(my_malloc(strlen(text) + 1), text); }
void item_set(struct item* i, const char* text) { i->text = my_copy(text); }
void item_reserve(struct item* i, size_t bytes) { i->text = their_malloc(bytes); }
void* other_memory(void) { return my_malloc(8); }
// CHECK-LABEL: define {{.*}}ptr @my_malloc(
// CHECK: call {{.*}}@malloc(
// CHECK-LABEL: define {{.*}}ptr @my_copy(
// CHECK: call {{.*}}@my_malloc(
// CHECK-LABEL: define {{.*}}void @item_set(
// CHECK: call {{.*}}@my_copy.obase(
// CHECK-LABEL: define {{.*}}void @item_reserve(
// CHECK: call {{.*}}@their_malloc.obase(
// CHECK-LABEL: define {{.*}}ptr @other_memory(
// CHECK: call {{.*}}@my_malloc(
// CHECK-LABEL: define {{.*}}ptr @my_malloc.obase(
// CHECK: call {{.*}}@obase_marked_malloc(
// CHECK-LABEL: define {{.*}}ptr @my_copy.obase(
// CHECK: call {{.*}}@my_malloc.obase(
// CHECK-LABEL: define {{.*}}ptr @my_text.obase(
// CHECK: call {{.*}}@my_malloc.obase(
