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

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct list all;
static void grow(int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = all.first;
    all.first = n;
}
static void shrink(void) {
    for (struct node* n = all.first; n;) {
        struct node* next = n->next;
        free(n);
        n = next;
    }
    all.first = NULL;
}
int main(void) {
    char text[100] = "text";
    for (int round = 0; round < 3; ++round) {
        for (int key = 0; key < 10; ++key) grow(key);
        shrink();
        if (round == 0) again(&all);
        if (round == 1) checked(&all, sizeof all);
        if (round == 2) explicitly(&all);
    }
    grow(1);
    other(text);
    printf("%ld %d\n", all.count, text[0]);
}
#endif
