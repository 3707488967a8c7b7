// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %obase-clang -fsanitize=thread --obase-library=%library %s -o %t
// RUN: not %t 2>&1 | %filecheck %s
// CHECK: obase: '{{.*}}thread_sanitizer.c' was compiled with -fsanitize=thread, and libobase was not
#include "marks.h"
struct node { int key; };
struct list { struct node* head OBASE_GUIDED; };
static int empty(const struct list* l) { return l->head == 0; }
int main(void) {
    static struct list l;
    return empty(&l) ? 0 : 1;
}
