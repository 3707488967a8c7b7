// SPDX-License-Identifier: MIT
// RUN: %accept
// Of functions that are known not to keep what they get.
#include "marks.h"
#include <stdio.h>
struct item { char* name OBASE_GUIDED; };
void show(struct item* i, char* out) { snprintf(out, 64, "<%s>", i->name); }
int number(struct item* i) { int n = 0; return sscanf(i->name, "%d", &n) == 1 ? n : -1; }
