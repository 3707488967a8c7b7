// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
// What begins as the object's address and goes on inside of it.
#include "marks.h"
struct item { char* text OBASE_GUIDED; };
void trim(struct item* i) {
    char* t = i->text;
    while (*t == ' ') t++;
    // CHECK: interior_in_loop.c:[[@LINE+1]]:{{.*}}error: obase: an address inside of a managed object
    i->text = t;
}
