// SPDX-License-Identifier: MIT
// RUN: %obase-clang -c %s -o %t.o 2>&1 | %filecheck %s
// CHECK: warning: the whole of main() becomes one operation: it names the marked field 'list::head' [obase:main]
// CHECK: note: no object can move while an operation runs
#include "marks.h"
struct node { int key; };
struct list { struct node* head OBASE_GUIDED; };
int main(void) {
    struct list l = {0};
    return l.head != 0;
}
