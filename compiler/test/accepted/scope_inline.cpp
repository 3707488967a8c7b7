// SPDX-License-Identifier: MIT
//
// Under arming an operation enters and leaves without a call, except for a thread's first scope,
// what is left to do at the end, and exceptions.
//
// REQUIRES: passes
// RUN: %obase-clang++ -O1 -fno-discard-value-names -S -emit-llvm %s -o - | %filecheck %s
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
class list {
  public:
    void push(int key) { head_ = new node{key, head_}; }
    int first() const;
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
int checked(int key);
int list::first() const { return checked(head_->key); }

// CHECK-LABEL: @_ZNK4list5firstEv(
// CHECK:       [[CONTEXT:%.*]] = {{.*}} @llvm.threadlocal.address.p0(ptr {{.*}}@_ZN5obase6arming8context_E)
// CHECK:       [[THREAD:%.*]] = load ptr, ptr [[CONTEXT]]
// CHECK:     obase.attached:
// CHECK:       load atomic i64, ptr [[THREAD]] monotonic
// CHECK:     obase.announce:
// CHECK:       [[NOW:%.*]] = load atomic i64, ptr %{{.*}} acquire
// CHECK:       store atomic i64 [[NOW]], ptr [[THREAD]] release
// CHECK:     obase.enter:
// CHECK:       call i64 @obase_marked_enter()
// CHECK:     obase.entered:
// CHECK:       [[OUTER:%.*]] = phi i64
// CHECK:       [[SLOT:%.*]] = phi ptr
// CHECK:       fence syncscope("singlethread") seq_cst
// CHECK:       load atomic ptr, ptr %this monotonic
// CHECK:       invoke {{.*}} @_Z7checkedi(
// The work that waits for the end of the outermost scope is a call's.
// CHECK:       icmp eq i64 [[OUTER]], 0
// CHECK:       call void @obase_marked_leave(i64 0)
// CHECK:       store atomic i64 [[OUTER]], ptr [[SLOT]] release
// CHECK:       ret i32
// CHECK:       call void @obase_marked_leave(i64 [[OUTER]])
// CHECK-NEXT:  resume

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
int checked(int key) { return key + 1; }
int main() {
    static list l;
    for (int key = 0; key < 20; ++key) l.push(key);
    std::printf("%d\n", l.first());
}
#endif
