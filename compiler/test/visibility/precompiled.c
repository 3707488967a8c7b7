// SPDX-License-Identifier: MIT
// As precompiled.cpp, in C.
// RUN: echo item::next > %t.marks
// RUN: %obase-clang --obase-marks=%t.marks --obase-visibility=%t.text -c -include %S/../inputs/precompiled.h -o %t.o %s
// RUN: %filecheck --input-file=%t.text %s
// RUN: %obase-clang -x c-header -c -o %t.pch %S/../inputs/precompiled.h
// RUN: %obase-clang --obase-marks=%t.marks --obase-visibility=%t.seen -c -include-pch %t.pch -o %t.pch.o %s
// RUN: diff %t.text %t.seen
// CHECK-DAG: mark{{.}}item::next{{.*}}marks file
// CHECK-DAG: entry{{.}}key_of({{.*}}called outside of any operation
// CHECK-DAG: entry{{.}}used_inside({{.*}}names the marked field 'item::next'
int used_outside(void) { return key_of(0); }
int used_inside(struct item* i) { return i->next == 0 ? item_key(i) : 0; }
