// SPDX-License-Identifier: MIT
//
// A thread may end in the middle of an operation; in C no cleanup runs then, so the slots in its
// frames end before that, also if the function that ends the thread has none. Its scope ends with it.
//
// REQUIRES: passes
// RUN: %obase-clang -O1 -S -emit-llvm %s -o - | %filecheck %s
#include "marks.h"
#include <pthread.h>
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
void add(struct list* l);
void* run(void* unused) {
    struct list l = {0};
    add(&l);
    if (l.head != 0 && l.head->key == 1) pthread_exit(unused);
    add(&l);
    return 0;
}

void give_up(void) { pthread_exit(0); }

// CHECK-LABEL: @run(
// CHECK:       call void @obase_marked_thread_ends()
// CHECK:       call void @pthread_exit(
// CHECK:       call void @obase_marked_forget({{.*}}, i64 8)
// CHECK:       ret ptr
// CHECK-LABEL: @give_up(
// CHECK:       call void @obase_marked_thread_ends()
// CHECK-NEXT:  call void @pthread_exit(
