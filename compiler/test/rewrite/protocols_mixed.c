// SPDX-License-Identifier: MIT
// REQUIRES: passes
// A program of two protocols ends at its start, whatever made its units, in C and in C++.
// RUN: rm -rf %t && mkdir -p %t && cp %s %t/unit.c && cp %s %t/unit.cpp
// RUN: %rewrite --out=%t/arming --root=%t %t/unit.c -- -std=gnu11
// RUN: %rewrite --out=%t/arming --root=%t %t/unit.cpp -- -std=c++20
// RUN: %rewrite --protocol=atc --out=%t/atc --root=%t %t/unit.c -- -std=gnu11 -DMAIN
// RUN: %rewrite --protocol=atc --out=%t/atc --root=%t %t/unit.cpp -- -std=c++20 -DMAIN
// RUN: %plain-gcc -c %t/arming/unit.c -o %t/arming.c.o
// RUN: %plain-gcc++ -c %t/arming/unit.cpp -o %t/arming.cpp.o
// RUN: %plain-clang -c %t/arming/unit.c -o %t/arming.clang.c.o
// RUN: %plain-gcc -DMAIN -c %t/atc/unit.c -o %t/atc.c.o
// RUN: %plain-clang -DMAIN -c %t/atc/unit.c -o %t/atc.clang.c.o
// RUN: %plain-gcc++ -DMAIN -c %t/atc/unit.cpp -o %t/atc.cpp.o
// RUN: %obase-clang -c %t/unit.c -o %t/passes.arming.o
// RUN: %obase-clang --obase-protocol=atc -c %t/unit.c -o %t/passes.atc.o

// One protocol is fine: of the rewriter, with the passes.
// RUN: %plain-gcc++ %t/atc.c.o %t/passes.atc.o %library -o %t/same && %t/same

// RUN: %plain-gcc++ %t/atc.c.o %t/arming.c.o %library -o %t/c
// RUN: sh -c "%t/c; echo status $?" 2>&1 | %filecheck %s
// RUN: %plain-gcc++ %t/atc.clang.c.o %t/arming.clang.c.o %library -o %t/clang
// RUN: sh -c "%t/clang; echo status $?" 2>&1 | %filecheck %s
// RUN: %plain-gcc++ %t/atc.cpp.o %t/arming.cpp.o %library -o %t/cpp
// RUN: sh -c "%t/cpp; echo status $?" 2>&1 | %filecheck %s
// RUN: %plain-gcc++ %t/atc.cpp.o %t/arming.c.o %library -o %t/both
// RUN: sh -c "%t/both; echo status $?" 2>&1 | %filecheck %s
// RUN: %plain-gcc++ %t/atc.c.o %t/passes.arming.o %library -o %t/passes
// RUN: sh -c "%t/passes; echo status $?" 2>&1 | %filecheck %s
// CHECK-NOT: started
// CHECK: obase: '{{.*}}unit.c{{.*}}' was compiled with --obase-protocol={{arming|atc}}, and '{{.*}}unit.c{{.*}}' with --obase-protocol={{arming|atc}}; compile all of a program with the same one (obase-rewrite: --protocol=)
// CHECK: status 1

// Within a translation unit it is an error of the compiler.
// RUN: sh -c "(cat %t/arming/unit.c; sed s/struct.box/struct\ other/ %t/atc/unit.c) > %t/two.c"
// RUN: not %plain-gcc -fsyntax-only %t/two.c 2>&1 | grep "files of obase-rewrite --protocol=arming and --protocol=atc in one translation unit"

// A library that is not sanitized is no good for those that are.
// RUN: %plain-gcc -DMAIN -fsanitize=thread -c %t/atc/unit.c -o %t/gcc.tsan.o
// RUN: %plain-gcc++ -fsanitize=thread %t/gcc.tsan.o %library -o %t/gcc.tsan
// RUN: sh -c "%t/gcc.tsan; echo status $?" 2>&1 | %filecheck --check-prefix=THREADS %s
// RUN: %plain-clang -DMAIN -fsanitize=thread -c %t/atc/unit.c -o %t/clang.tsan.o
// RUN: %plain-clang++ -fsanitize=thread %t/clang.tsan.o %library -o %t/clang.tsan
// RUN: sh -c "%t/clang.tsan; echo status $?" 2>&1 | %filecheck --check-prefix=THREADS %s
// THREADS: unit.c' was compiled with -fsanitize=thread, and libobase was not
// THREADS: status 1
#include <obase/marked.h>
#include <stdio.h>
#include <stdlib.h>
struct box {
    void* held OBASE_GUIDED;
};
#ifdef MAIN
static void fill(struct box* b) {
    free(b->held);
    b->held = malloc(16);
}
#ifndef __cplusplus
__attribute__((constructor(101)))
#endif
static void starts(void) {
    struct box* b = (struct box*)calloc(1, sizeof *b);
    puts("started");
    fill(b);
}
int main(void) {
    starts();
    return 0;
}
#else
void box_empty(struct box* b) {
    free(b->held);
    b->held = NULL;
}
#endif
