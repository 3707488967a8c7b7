// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
#include "marks.h"
#include <stdarg.h>
struct node { int key; };
struct list { struct node* head OBASE_GUIDED; };
static struct node* kept;
static void keep(int count, ...) {
    va_list nodes;
    va_start(nodes, count);
    while (count-- > 0) kept = va_arg(nodes, struct node*);
    va_end(nodes);
}
// CHECK: variable_arguments_taken.c:[[@LINE+1]]:{{.*}}error: obase: {{.*}}variable arguments of keep, which takes it by va_arg
void hold(struct list* l) { keep(1, l->head); }
