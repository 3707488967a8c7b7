// SPDX-License-Identifier: MIT
// Slots end that are cleared as bytes, as with the passes (accepted/cleared_again.c).
// RUN: rm -rf %t && %rewrite --out=%t --root=%S %s -- -std=gnu11
// RUN: sed "/CHECK\\|MACRO:/d" %t/cleared.c | %filecheck --match-full-lines %s
// RUN: %plain-clang -O1 -c %t/cleared.c -o %t/cleared.o
// RUN: %plain-gcc -O1 -c %t/cleared.c -o %t/cleared.o
// RUN: not %rewrite --out=%t/out --root=%S %s -- -std=gnu11 -DMACRO -fno-caret-diagnostics 2>&1 | %filecheck --check-prefix=MACRO %s
#include <obase/marked.h>
#include <string.h>
#include <strings.h>
struct node {
    int key;
    struct node* next OBASE_GUIDED;
};
struct list {
    long count;
    struct node* first OBASE_GUIDED;
};
void again(struct list* l) { memset(l, 0, sizeof *l); }
// CHECK: void again(struct list* l) { obase_slots_memset(l, 0, sizeof *l); }
void variable(struct list* l) {
    struct list mine = {0};
    mine.first = l->first;
    l->first = mine.first->next;
    memset(&mine, 0, sizeof mine);
    bzero(l, sizeof *l);
    explicit_bzero(l, sizeof *l);
}
// CHECK:     obase_slots_memset(&mine, 0, sizeof mine);
// CHECK-NEXT:     obase_slots_bzero(l, sizeof *l);
// CHECK-NEXT:     obase_slots_bzero(l, sizeof *l);
void any(void* memory, size_t bytes) { memset(memory, 0, bytes); }
// CHECK: void any(void* memory, size_t bytes) { obase_slots_memset(memory, 0, bytes); }
long other(long* numbers) {
    char text[16];
    memset(text, 0, sizeof text);
    memset(numbers, 0, 80);
    return text[3];
}
// CHECK:     memset(text, 0, sizeof text);
// CHECK-NEXT:     memset(numbers, 0, 80);
#ifdef MACRO
#define CLEAR(what) memset(&(what), 0, sizeof(what))
// MACRO: cleared.c:[[@LINE+1]]:{{[0-9]+}}: error: clearing a struct with marked fields is written by a macro [obase:rewrite]
void by_macro(struct list* l) { CLEAR(*l); }
#endif
