// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct node { int key; };
struct list { node* head OBASE_GUIDED = nullptr; };
int count() {
    list l;
    // CHECK: error: 'list' with the marked field 'list::head' is copied as a whole{{.*}}[obase:struct-copy]
    return [l] { return l.head == nullptr; }() ? 0 : 1;
}
