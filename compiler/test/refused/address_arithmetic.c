// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
#include "marks.h"
struct list { int* values OBASE_GUIDED; int count; };
int sum(const struct list* l) {
    int total = 0;
    // CHECK: error:
    // CHECK: error:
    for (int* p = l->values; p < l->values + l->count; ++p) total += *p;
    return total;
}
