// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { int key; };
struct list { struct node* head OBASE_GUIDED; };
// CHECK: error: 'list' with the marked field 'list::head' is returned by value{{.*}}[obase:struct-copy]
struct list empty(void) {
    struct list l = {0};
    // CHECK: error: 'list' with the marked field 'list::head' is copied as a whole{{.*}}[obase:struct-copy]
    return l;
}
