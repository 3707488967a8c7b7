// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: printf 'item::text\nmakes my_malloc\nmakes my_copy\nmakes pooled\n' > %t.marks
// RUN: not %obase-clang -O1 -c --obase-marks=%t.marks -o %t.o %s 2>&1 | %filecheck %s
// A line 'makes' that nothing comes of: the function takes what it returns from where nothing is known to be allocated.
#include <stdlib.h>
#include <string.h>
struct item { char* text; };
char* not_named(size_t bytes);
void* my_malloc(size_t bytes) { return malloc(bytes); }
// CHECK: makes_nothing.c:[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}nothing that 'my_copy' returns is seen to be allocated
char* my_copy(const char* text) { return strcpy(not_named(strlen(text) + 1), text); }
static char pool[1000];
// CHECK: makes_nothing.c:[[@LINE+1]]:{{[0-9]+}}: error: {{.*}}nothing that 'pooled' returns is seen to be allocated
char* pooled(size_t bytes) { return pool + bytes; }
void item_set(struct item* i, const char* text) { i->text = my_copy(text); }
