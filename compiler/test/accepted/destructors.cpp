// SPDX-License-Identifier: MIT
//
// With which variants of a destructor slots end: not when the memory has been freed, and also where clang
// would use the base's instead, or has named it before the class's own was needed.
//
// REQUIRES: passes
// RUN: %obase-clang++ -O1 -fno-inline -S -emit-llvm %s -o - | %filecheck %s
#include "marks.h"
#include <memory>
void use();
struct node { int key; };
struct base {
    virtual ~base();
    node* head OBASE_GUIDED = nullptr;
};
base::~base() { use(); }
// CHECK-LABEL: define {{.*}}@_ZN4baseD2Ev(
// CHECK:       call void @obase_marked_destroyed({{.*}}, i64 16)
// CHECK-LABEL: define {{.*}}@_ZN4baseD0Ev(
// CHECK-NOT:   obase_marked_destroyed
// CHECK:       ret void

struct adds : base { node* more OBASE_GUIDED = nullptr; };
struct plain { ~plain(); };
struct first_here : plain { node* head OBASE_GUIDED = nullptr; };
struct from_unwritten { std::unique_ptr<int> other; node* head OBASE_GUIDED = nullptr; };
struct names_early : from_unwritten { ~names_early(); };
// CHECK-LABEL: define {{.*}}@_ZN11names_earlyD2Ev(
// CHECK:       call void @obase_marked_destroyed({{.*}}, i64 16)
names_early::~names_early() { use(); }
struct around { std::unique_ptr<int> other; from_unwritten in[2]; };
void all(adds* a, first_here* b, from_unwritten* c, around* d) { delete a, delete b, delete c, delete d; }
OBASE_ENTRY base* make() { return new adds; }

// CHECK-DAG: define {{.*}}@_ZN4addsD2Ev({{.*}}dereferenceable(24)
// CHECK-DAG: define {{.*}}@_ZN10first_hereD{{[12]}}Ev({{.*}}dereferenceable(8)
// CHECK-DAG: define {{.*}}@_ZN14from_unwrittenD2Ev({{.*}}dereferenceable(16)
// CHECK-DAG: call void @obase_marked_destroyed({{.*}}, i64 24)
// CHECK-DAG: define {{.*}}@_ZN6aroundD{{[12]}}Ev({{.*}}dereferenceable(40)
// CHECK-DAG: call void @obase_marked_destroyed({{.*}}, i64 40)

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
void use() {}
plain::~plain() {}
static adds both;
static void fill() {
    both.head = new node{1};
    both.more = new node{2};
}
static int sum() { return both.head->key + both.more->key; }
static void drop() {
    delete both.head;
    delete both.more;
    both.head = both.more = nullptr;
}
static void destroy_each() { delete new names_early(); }
int main() {
    all(new adds, new first_here, new from_unwritten, new around);
    destroy_each();
    fill();
    std::printf("%d\n", sum());
    drop();
}
#endif
