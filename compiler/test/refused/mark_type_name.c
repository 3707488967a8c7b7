// SPDX-License-Identifier: MIT
// RUN: %refuse
// clang forgets the annotation of a type name, so the fields would be unmarked in silence.
#include "marks.h"
struct node { int key; };
// CHECK: error: a type name is marked{{.*}}[obase:mark-place]
typedef struct node* node_pointer OBASE_GUIDED;
struct list { node_pointer head; };
int empty(const struct list* l) { return l->head == 0; }
