// SPDX-License-Identifier: MIT
// RUN: printf 'entry::next\n' > %t.marks
// RUN: %obase-clang -S -emit-llvm -O0 -Xclang -disable-llvm-passes --obase-marks=%t.marks --obase-visibility=%t.txt -o %t.ll %s
// RUN: %filecheck --input-file=%t.txt %s
// A member whose type has no name is none of the marked struct's namesakes.
struct entry {
    union { void* value; long number; } v;
    struct entry* next;
};
int entry_is_last(const struct entry* e) { return e->next == 0; }
// CHECK: mark	entry::next	{{.*}}	marks file
