// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
#include "marks.h"
void log_line(const char* format, ...);
struct node { int key; };
struct list { struct node* head OBASE_GUIDED; };
// CHECK: error:
void show(struct list* l) { log_line("%p", (void*)l->head); }
