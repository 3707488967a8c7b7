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

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct list all;
void add(struct list* l) {
    struct node* n = malloc(sizeof *n);
    n->key = 2;
    n->next = all.head;
    all.head = n;
    struct node* one = malloc(sizeof *one);
    one->key = 1;
    one->next = NULL;
    l->head = one;
}
void fill(int* place) { place[0] = 4; }
static int length(void) {
    int count = 0;
    for (const struct node* n = all.head; n; n = n->next) ++count;
    return count;
}
int main(void) {
    int sum = 0;
    for (int i = 0; i < 5; ++i) sum += with_slots() + without();
    printf("%d %d\n", sum, length());
}
#endif
