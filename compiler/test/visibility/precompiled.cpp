// SPDX-License-Identifier: MIT
// What is in a precompiled header is decided as if its text were there, by the marks and the uses of
// the source that includes it, whatever precompiled it.
// RUN: echo item::next > %t.marks
// RUN: %obase-clang++ --obase-marks=%t.marks --obase-visibility=%t.text -c -include %S/../inputs/precompiled.h -o %t.o %s
// RUN: %filecheck --input-file=%t.text %s
// RUN: rm -f %t.header && %obase-clang++ --obase-visibility=%t.header -x c++-header -c -o %t.pch %S/../inputs/precompiled.h
// RUN: not ls %t.header
// RUN: %obase-clang++ --obase-marks=%t.marks --obase-visibility=%t.seen -c -include-pch %t.pch -o %t.pch.o %s
// RUN: sort %t.text > %t.text.sorted && sort %t.seen > %t.seen.sorted && diff %t.text.sorted %t.seen.sorted
// RUN: %plain-clang++ -I %S/../inputs -x c++-header -c -o %t.plain.pch %S/../inputs/precompiled.h
// RUN: %obase-clang++ --obase-marks=%t.marks --obase-visibility=%t.seen -c -include-pch %t.plain.pch -o %t.pch.o %s
// RUN: sort %t.text > %t.text.sorted && sort %t.seen > %t.seen.sorted && diff %t.text.sorted %t.seen.sorted
// With its instances of templates, as CMake precompiles headers.
// RUN: %obase-clang++ -fpch-instantiate-templates -x c++-header -c -o %t.pch %S/../inputs/precompiled.h
// RUN: %obase-clang++ --obase-marks=%t.marks --obase-visibility=%t.seen -c -include-pch %t.pch -o %t.pch.o %s
// RUN: sort %t.text > %t.text.sorted && sort %t.seen > %t.seen.sorted && diff %t.text.sorted %t.seen.sorted
// The code is the same, too: every load of a slot is one.
// RUN: %obase-clang++ -O1 -x c++-header -c -o %t.pch %S/../inputs/precompiled.h
// RUN: %obase-clang++ --obase-marks=%t.marks -O1 -S -emit-llvm -include %S/../inputs/precompiled.h -o - %s | grep -c obase_marked > %t.text.calls
// RUN: %obase-clang++ --obase-marks=%t.marks -O1 -S -emit-llvm -include-pch %t.pch -o - %s | grep -c obase_marked > %t.calls
// RUN: diff %t.text.calls %t.calls
// CHECK-DAG: mark{{.}}item::next{{.*}}marks file
// CHECK-DAG: entry{{.}}key_of(const struct late *){{.*}}called outside of any operation
// CHECK-NOT: too_early
// CHECK-DAG: internal{{.}}not_used_outside
// CHECK-DAG: entry{{.}}list::sum()
// CHECK-DAG: entry{{.}}not_inline(const item *)
// CHECK-DAG: entry{{.}}box<late>::full()
int used_outside() { return key_of(nullptr); }
int more(const item* i) { return item_key(i) + summed().sum; }
bool has(int key) { return all.has(key) || all.sum() == all.stored(); }
