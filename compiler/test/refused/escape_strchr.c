// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
#include "marks.h"
#include <string.h>
struct item { char* line OBASE_GUIDED; };
// CHECK: error: {{.*}}returns the address of a managed object
const char* value(struct item* i) { return strchr(i->line, '=') + 1; }
