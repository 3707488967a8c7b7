// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %obase-clang -O0 -S -emit-llvm %s -o - | %filecheck %s
// Slots end that are cleared as bytes: of a variable in a loop, which begins anew each time round, and
// of memory that is used again. Fresh memory, and what is too small, has none.
#include "marks.h"
#include <stdlib.h>
#include <string.h>
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { long count; struct node* first OBASE_GUIDED; };
// CHECK-LABEL: define {{.*}} @rounds
// CHECK: call void @obase_marked_forget(ptr %[[V:[0-9]+]], i64 16)
// CHECK-NEXT: call void @llvm.memset.p0.i64(ptr {{.*}}%[[V]], i8 0, i64 16
// CHECK: ret void
void rounds(struct list* l, int count) {
    for (int i = 0; i < count; ++i) {
        struct list mine = {0};
        mine.first = l->first;
        l->first = mine.first->next;
        mine.first->next = NULL;
        l->first = mine.first;
        mine.first = NULL;
    }
}
// CHECK-LABEL: define {{.*}} @again
// CHECK: call void @obase_marked_forget
// CHECK: call void @llvm.memset
// CHECK: ret void
void again(struct list* l) {
    l->first = NULL;
    memset(l, 0, sizeof *l);
}
// CHECK-LABEL: define {{.*}} @fresh
// CHECK-NOT: obase_marked_forget
// CHECK: call void @llvm.memset
// CHECK: ret void
void fresh(struct list* l) {
    char text[16] = {0};
    struct node* n = malloc(sizeof *n);
    memset(n, 0, sizeof *n);
    n->key = text[l->count];
    l->first = n;
}

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
static struct list all;
static void grow(int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = all.first;
    all.first = n;
}
static int sum(void) {
    int keys = 0;
    for (const struct node* n = all.first; n; n = n->next) keys += n->key;
    return keys;
}
int main(void) {
    for (int key = 1; key < 20; ++key) grow(key);
    rounds(&all, 5);
    printf("%d\n", sum());
    again(&all);
    fresh(&all);
    printf("%d\n", sum());
}
#endif
