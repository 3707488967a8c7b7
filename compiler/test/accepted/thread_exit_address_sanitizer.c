// SPDX-License-Identifier: MIT
//
// Slots in frames stay on the thread's stack, where the runtime finds them when the thread ends. ASan
// would have them elsewhere, to find uses after return; it may where there are none.
//
// REQUIRES: passes
// RUN: %obase-clang -O1 -fsanitize=address -S -emit-llvm %s -o - | %filecheck %s
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
void add(struct list* l);
void fill(int* place);
int with_slots(void) {
    struct list l = {0};
    add(&l);
    return l.head != 0;
}

int without(void) {
    int place[10];
    fill(place);
    return place[0];
}

// CHECK-LABEL: @with_slots(
// CHECK-NOT:   call {{.*}}@__asan_stack_malloc
// CHECK:       call void @obase_marked_forget({{.*}}, i64 8)
// CHECK-LABEL: @without(
// CHECK:       call {{.*}}@__asan_stack_malloc
