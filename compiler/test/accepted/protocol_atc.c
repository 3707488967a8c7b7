// SPDX-License-Identifier: MIT
//
// The protocol is the driver's argument: the same source calls the functions of atc.
//
// REQUIRES: passes
// RUN: %obase-clang --obase-protocol=atc -O1 -S -emit-llvm %s -o - | %filecheck %s
// RUN: %obase-clang --obase-protocol=arming -O1 -S -emit-llvm %s -o - | %filecheck %s --check-prefix=ARMING
// RUN: not %obase-clang --obase-protocol=other -c %s -o %t.o 2>&1 | %filecheck %s --check-prefix=OTHER
#include <obase/marked.h>

#include <stdlib.h>

struct node {
    int key;
    struct node* next OBASE_GUIDED;
};

int key_of_next(const struct node* n) { return n->next->key; }
void cut(struct node* n) { n->next = NULL; }
void drop(struct node* n) { free(n); }

// CHECK-LABEL: @key_of_next(
// CHECK:         call i64 @obase_marked_atc_enter()
// CHECK:         load atomic ptr
// CHECK:         @obase_marked_atc_direct
// CHECK:         call ptr @obase_marked_atc_load(
// CHECK:         call void @obase_marked_atc_leave(
// CHECK-LABEL: @cut(
// CHECK-NOT:     store
// CHECK:         call void @obase_marked_atc_store({{.*}}, ptr null)
// CHECK-LABEL: @drop(
// CHECK:         call void @obase_marked_atc_free(
// CHECK:       !"obase.protocol", i32 1

// ARMING-LABEL: @key_of_next(
// ARMING:         call ptr @obase_marked_load(
// ARMING-LABEL: @cut(
// ARMING:         store atomic ptr null
// ARMING:       !"obase.protocol", i32 0

// OTHER: '--obase-protocol=other' names no protocol; there are arming and atc

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
static struct node first;
static void grow(int key) {
    struct node* n = calloc(1, sizeof *n);
    n->key = key;
    first.next = n;
}
static void shrink(void) {
    drop(first.next);
    cut(&first);
}
int main(void) {
    for (int key = 0; key < 20; ++key) {
        grow(key);
        if (key_of_next(&first) != key) return 1;
        shrink();
    }
    puts("done");
}
#endif
