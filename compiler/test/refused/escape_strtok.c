// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
// It goes on where it was when it is called with null.
#include "marks.h"
#include <string.h>
struct document { char* text OBASE_GUIDED; };
// CHECK: error: {{.*}}handed to strtok, which keeps it
void first_word(struct document* d, char* out) { strcpy(out, strtok(d->text, " ")); }
