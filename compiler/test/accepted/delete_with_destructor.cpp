// SPDX-License-Identifier: MIT
//
// A destructor ends the slots of its object, so the runtime finds none when the memory is freed. It is
// told, and the memory waits for the operations that are open.
//
// REQUIRES: passes
// RUN: %obase-clang++ -O0 -S -emit-llvm %s -o - | %filecheck %s
// RUN: %obase-clang++ -O0 --obase-protocol=atc -S -emit-llvm %s -o - | %filecheck %s --check-prefix=ATC
#include "marks.h"
#include <memory>
struct node { int key; };
struct bucket {
    ~bucket() { head = nullptr; }
    node* head OBASE_GUIDED = nullptr;
};
struct row { bucket both[2]; };
struct owner { std::unique_ptr<node> held OBASE_GUIDED; };
struct elsewhere { ~elsewhere(); node* head OBASE_GUIDED = nullptr; };
struct outside { ~outside(); node* head OBASE_GUIDED = nullptr; };
outside::~outside() { head = nullptr; }
struct derived : outside { long words[8]; };
struct without { ~without(); long words[8]; };
class table {
  public:
    OBASE_ENTRY void one() { delete bucket_; }
    OBASE_ENTRY void many() { delete[] buckets_; }
    OBASE_ENTRY void of_a_member() { delete row_; }
    OBASE_ENTRY void unique() { delete owner_; }
    OBASE_ENTRY void foreign() { if (elsewhere_->head == nullptr) delete elsewhere_; }
    OBASE_ENTRY void base() { delete derived_; }
    OBASE_ENTRY void none() { delete without_; }
  private:
    bucket* bucket_;
    bucket* buckets_;
    row* row_;
    owner* owner_;
    elsewhere* elsewhere_;
    derived* derived_;
    without* without_;
};
void use(table& t) { t.one(), t.many(), t.of_a_member(), t.unique(), t.foreign(), t.base(), t.none(); }

// CHECK-LABEL: define {{.*}}@_ZN5table3oneEv(
// CHECK:       call void @obase_marked_delete_slotted({{.*}}, i64 8, i64 0)
// CHECK-LABEL: define {{.*}}@_ZN5table4manyEv(
// CHECK:       call void @obase_marked_delete_array_slotted(
// CHECK-LABEL: define {{.*}}@_ZN5table11of_a_memberEv(
// CHECK:       call void @obase_marked_delete_slotted({{.*}}, i64 16, i64 0)
// CHECK-LABEL: define {{.*}}@_ZN5table6uniqueEv(
// CHECK:       call void @obase_marked_delete_slotted({{.*}}, i64 8, i64 0)
// CHECK-LABEL: define {{.*}}@_ZN5table7foreignEv(
// CHECK:       call void @obase_marked_delete_slotted({{.*}}, i64 8, i64 0)
// CHECK-LABEL: define {{.*}}@_ZN5table4baseEv(
// CHECK:       call void @obase_marked_delete_slotted({{.*}}, i64 72, i64 0)
// CHECK-LABEL: define {{.*}}@_ZN5table4noneEv(
// CHECK:       call void @obase_marked_delete({{.*}}, i64 64, i64 0)

// ATC-LABEL: define {{.*}}@_ZN5table3oneEv(
// ATC:       call void @obase_marked_atc_delete_slotted({{.*}}, i64 8, i64 0)
