// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
#include "marks.h"
#include <search.h>
struct item { char* name OBASE_GUIDED; };
int enter(struct item* i) {
    ENTRY entry = {i->name, i};
    // CHECK: error: {{.*}}handed to hsearch, which keeps it
    return hsearch(entry, ENTER) != 0;
}
