// SPDX-License-Identifier: MIT
// RUN: not %rewrite --out=%t.out --root=%S %s -- -std=gnu11 -I%S/../inputs 2>&1 | %filecheck %s
#define _GNU_SOURCE
#include "marks.h"
#include <stdlib.h>
struct lines {
    // CHECK-DAG: refused_elements.c:[[@LINE+1]]:{{.*}}error: the elements of the array that 'lines::line' points to are slots{{.*}}[obase:rewrite]
    char** line OBASE_GUIDED;
    int* numbers OBASE_GUIDED;
};
static char* title OBASE_GUIDED;
// CHECK-DAG: refused_elements.c:[[@LINE+1]]:{{.*}}error: the marked variable 'title' is no field [obase:rewrite]
int titled(void) { return title != 0; }
void grow(struct lines* l, size_t n) {
    // CHECK-DAG: refused_elements.c:[[@LINE+1]]:{{.*}}error: reallocarray may get managed memory{{.*}}[obase:rewrite]
    l->numbers = reallocarray(l->numbers, n, sizeof *l->numbers);
}
