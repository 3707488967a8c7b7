// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
// A stream that reads what a marked field holds, and still has its address when the operation has ended.
#include "marks.h"
#include <stdio.h>
#include <string.h>
struct item { char* text OBASE_GUIDED; };
static FILE* reading;
void open_text(struct item* i) {
    // CHECK-DAG: error: {{.*}}stored into a global variable
    // CHECK-DAG: error: {{.*}}handed to fmemopen, which keeps it
    reading = fmemopen(i->text, strlen(i->text), "r");
}
