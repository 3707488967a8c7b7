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

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct list all;
void add(struct list* l) {
    struct node* n = malloc(sizeof *n);
    n->key = l->head ? 1 : 2;
    n->next = l->head;
    l->head = n;
    struct node* shared = malloc(sizeof *shared);
    shared->key = 3;
    shared->next = all.head;
    all.head = shared;
}
static int length(void) {
    int count = 0;
    for (const struct node* n = all.head; n; n = n->next) ++count;
    return count;
}
static void* ends_elsewhere(void* unused) {
    give_up();
    return unused;
}
int main(void) {
    for (int i = 0; i < 5; ++i) {
        pthread_t thread;
        pthread_create(&thread, NULL, i % 2 ? run : ends_elsewhere, NULL);
        pthread_join(thread, NULL);
        printf("%d\n", length());
    }
}
#endif
