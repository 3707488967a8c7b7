// SPDX-License-Identifier: MIT
// RUN: rm -rf %t && mkdir -p %t/out
// RUN: printf '# comment\nitem::next\ncache::first # here\ninternal item_last\noutside cache_run\nabsent::field\n' > %t/marks
// RUN: %obase-clang -S -emit-llvm -O0 -Xclang -disable-llvm-passes --obase-marks=%t/marks --obase-visibility=%t/out -o %t/ll %s
// RUN: cat %t/out/marks_file.c.*.visibility | %filecheck %s
// RUN: %filecheck --input-file=%t/ll --check-prefix=IR %s
// Marks without a word in the source; the visibility file goes into a directory.
typedef struct item { int key; struct item* next; } item;
typedef struct { item* first; } cache;
int item_last(const item* i) { return i->next == 0; }
int cache_empty(const cache* c) { return c->first == 0; }
int cache_run(cache* c) { return cache_empty(c); }
// CHECK: mark	item::next	{{.*}}	marks file
// CHECK: mark	{{.*}}::first	{{.*}}	marks file
// CHECK: internal	item_last(const item *)	item_last	{{.*}}	the marks file says so
// CHECK: entry	cache_empty(const cache *)
// CHECK-NOT: cache_run
// IR: define {{.*}}@item_last
// IR: call ptr @llvm.ptr.annotation.p0
// IR: define {{.*}}@cache_empty
// IR: call ptr @llvm.ptr.annotation.p0
