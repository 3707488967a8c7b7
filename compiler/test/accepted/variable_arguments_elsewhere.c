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

#ifdef WITH_MAIN // run_corpus.py
#include <stdlib.h>
void log_line(const char* format, ...) { (void)format; }
static struct list all;
static void set(int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    all.head = n;
}
static int key(void) { return all.head->key; }
int main(void) {
    set(3);
    show(&all);
    printf("%d\n", key());
}
#endif
