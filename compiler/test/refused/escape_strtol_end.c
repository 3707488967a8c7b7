// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
#include "marks.h"
#include <stdlib.h>
struct item { char* line OBASE_GUIDED; char* at; };
long first(struct item* i) {
    char* end;
    const long v = strtol(i->line, &end, 10);
    // CHECK: error: {{.*}}address of a managed object
    i->at = end;
    return v;
}
