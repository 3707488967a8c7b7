// SPDX-License-Identifier: MIT
// RUN: %obase-clang++ -Xclang -disable-llvm-passes -S -emit-llvm -O0 -o %t.ll %s
// RUN: tr '{' '\n' < %t.ll > %t.lines
// RUN: %filecheck --input-file=%t.lines %s
// The attribute reaches each symbol, constructors and destructors included, whether the definition
// comes before the use or after it, and for static functions what is known at the end.
#include "marks.h"
struct node { int key; };
class box {
  public:
    box();
    ~box();
    int get() const;
    void set(int key) { replace(new node{key}); }
  private:
    void replace(node* n);
    node* held_ OBASE_GUIDED = nullptr;
};
int early(const box& b) { return b.get(); }
int box::get() const { return held_ != nullptr ? held_->key : 0; }
box::box() : held_(new node{0}) {}
box::~box() { replace(nullptr); }
void box::replace(node* n) {
    delete held_;
    held_ = n;
}
struct shelf { node* held OBASE_GUIDED; };
static int helper(const shelf& s) { return s.held != nullptr ? s.held->key : 0; }
static int promoted(const shelf& s) { return helper(s); }
shelf* all();
int use() {
    box b;
    b.set(1);
    return b.get() + promoted(*all());
}
// CHECK-DAG: [[ENTRY:@[.a-z0-9]+]] = {{.*}}c"obase::entry\00"
// CHECK-DAG: [[INTERNAL:@[.a-z0-9]+]] = {{.*}}c"obase::internal\00"
// CHECK: @llvm.global.annotations
// CHECK-NOT: define
// CHECK-DAG: ptr @_ZNK3box3getEv, ptr [[ENTRY]],
// CHECK-DAG: ptr @_ZN3boxC2Ev, ptr [[ENTRY]],
// CHECK-DAG: ptr @_ZN3boxD2Ev, ptr [[ENTRY]],
// CHECK-DAG: ptr @_ZN3box3setEi, ptr [[ENTRY]],
// CHECK-DAG: ptr @_ZN3box7replaceEP4node, ptr [[INTERNAL]],
// CHECK-DAG: ptr @_ZL6helperRK5shelf, ptr [[INTERNAL]],
// CHECK-DAG: ptr @_ZL8promotedRK5shelf, ptr [[ENTRY]],
