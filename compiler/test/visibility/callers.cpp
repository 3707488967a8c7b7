// SPDX-License-Identifier: MIT
// RUN: %obase-clang++ -c -O0 --obase-visibility=%t.txt -o %t.o %s
// RUN: %filecheck --input-file=%t.txt %s
// A data structure that is made of wrappers names no marked field: what calls their methods, which are
// parts of operations, is one.
#include "marks.h"
struct text { int size; };
class cell {
  public:
    OBASE_INTERNAL text* get() const { return held_; }
  private:
    text* held_ OBASE_GUIDED = nullptr;
};
struct look { const text* operator()(const cell& c) const { return c.get(); } };
class table {
  public:
    bool has(unsigned i) const { return find(i) != nullptr; }
  private:
    struct row { cell value; };
    const text* find(unsigned i) const { return look()(rows_[i % 8].value); }
    row rows_[8];
};
table* all();
int use() { return all()->has(1); }
OBASE_OUTSIDE int runs_for_ever() { return all()->has(2); }
// CHECK-DAG: internal{{.}}look::operator()(const cell &){{.*}}calls 'cell::get', which is a part of operations
// CHECK-DAG: internal{{.}}table::find(unsigned int){{.*}}calls 'look::operator()'
// CHECK-DAG: entry{{.}}table::has(unsigned int){{.*}}calls 'table::find'
// CHECK-NOT: use()
// CHECK-NOT: runs_for_ever
