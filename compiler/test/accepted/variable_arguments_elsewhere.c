// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %accept --obase-trust=%t.trust
// RUN: %filecheck %s < %t.trust
// A function elsewhere gets the address among others, and is in the trust file as for any argument; one
// here hands all on.
#include "marks.h"
#include <stdarg.h>
#include <stdio.h>
void log_line(const char* format, ...);
static void log_here(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
}
struct node { int key; };
struct list { struct node* head OBASE_GUIDED; };
// CHECK: call log_line {{.*}}variable_arguments_elsewhere.c:{{.*}} show argument 2
void show(struct list* l) { log_line("%p", (void*)l->head); }
void show_here(struct list* l) { log_here("%p", (void*)l->head); }
