// SPDX-License-Identifier: MIT
// RUN: %obase-clang++ -c -O0 --obase-visibility=%t.txt -o %t.o %s
// RUN: %filecheck --input-file=%t.txt %s
// What a default argument or a default member initializer does is done by the function that calls, or
// by the constructor.
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
struct list { node* head OBASE_GUIDED; };
extern list all;
static int first() { return all.head == nullptr ? 0 : all.head->key; }
// CHECK-DAG: entry{{.}}first(){{.*}}called outside of any operation
static int second() { return all.head == nullptr ? 0 : all.head->key; }
// CHECK-DAG: internal{{.}}second(){{.*}}names the marked field 'list::head'
int plus(int k = all.head->key);
int calls() { return plus(); }
// CHECK-DAG: entry{{.}}calls(){{.*}}names the marked field 'list::head'
struct written { int key = all.head->key; written() {} };
// CHECK-DAG: entry{{.}}written::written(){{.*}}names the marked field 'list::head'
struct implied { int key = all.head->key; virtual ~implied() = default; };
// CHECK-DAG: entry{{.}}implied::implied(){{.*}}names the marked field 'list::head'
struct inherits : implied { using implied::implied; };
struct through { implied part; };
int made() { return inherits().key + through().part.key; }
struct promotes { int key = first(); promotes() {} };
struct stays { int key = second(); };
OBASE_ENTRY int stay() { return stays{}.key; }
template <class T> struct holder { T at = all.head->key; holder() {} };
// CHECK-DAG: entry{{.}}holder<int>::holder(){{.*}}names the marked field 'list::head'
int hold() { return holder<int>().at; }
// A closure in a default argument is not only called here.
inline int run(int k = [](const list& l) { return l.head->key; }(all)) { return k; }
// CHECK-DAG: entry{{.}}{{.*}}operator()(const list &){{.*}}:[[#@LINE-1]]{{.*}}may run in another thread
OBASE_ENTRY int runs() { return run(); }
// CHECK-NOT: made()
