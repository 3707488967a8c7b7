// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse++
// Called through a pointer to a function, at a time that is not known.
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
struct list { node* head OBASE_GUIDED; };
int first(const list& l, const node* (*at)(const list&)) { return at(l)->key; }
int use(const list& l) {
    // CHECK: [[#@LINE+1]]:{{.*}}error: {{.*}}an operation returns the address of a managed object
    return first(l, [](const list& of) -> const node* { return of.head; });
}
