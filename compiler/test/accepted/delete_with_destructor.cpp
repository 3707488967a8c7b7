// SPDX-License-Identifier: MIT
//
// A destructor ends the slots of its object and says that memory around it had some, which waits for the
// operations that are open, whatever frees it.
//
// REQUIRES: passes
// RUN: %obase-clang++ -O0 -S -emit-llvm %s -o - | %filecheck %s
// RUN: %obase-clang++ -O0 --obase-protocol=atc -S -emit-llvm %s -o - | %filecheck %s --check-prefix=ATC
#include "marks.h"
#include <memory>
struct node { int key; };
void use();
struct bucket {
    ~bucket();
    node* head OBASE_GUIDED = nullptr;
};
bucket::~bucket() { head = nullptr; }
struct owner {
    ~owner();
    std::unique_ptr<node> held OBASE_GUIDED;
};
owner::~owner() {}
struct without { ~without(); long words[8]; };
without::~without() {}
// It does not name the field.
struct silent { ~silent(); node* head OBASE_GUIDED = nullptr; };
silent::~silent() { use(); }
// No destructor, though its name ends as one's: _ZN11overloading2D2Ev.
struct overloading { void D2(); node* head OBASE_GUIDED; };
void overloading::D2() { head = nullptr; }
class table {
  public:
    OBASE_ENTRY void one() { delete bucket_; }
    OBASE_ENTRY void many() { delete[] buckets_; }
  private:
    bucket* bucket_;
    bucket* buckets_;
};
void use(table& t) { t.one(), t.many(); }

// CHECK-LABEL: define {{.*}}@_ZN6bucketD2Ev(
// CHECK:       call void @obase_marked_destroyed({{.*}}, i64 8)
// CHECK-LABEL: define {{.*}}@_ZN5ownerD2Ev(
// CHECK:       call void @obase_marked_destroyed({{.*}}, i64 8)
// CHECK-LABEL: define {{.*}}@_ZN7withoutD2Ev(
// CHECK-NOT:   obase_marked_destroyed
// CHECK-LABEL: define {{.*}}@_ZN6silentD2Ev(
// CHECK:       call void @obase_marked_destroyed({{.*}}, i64 8)
// CHECK-LABEL: define {{.*}}@_ZN11overloading2D2Ev(
// CHECK-NOT:   obase_marked_destroyed
// CHECK-LABEL: define {{.*}}@_ZN5table3oneEv(
// CHECK:       call void @obase_marked_delete({{.*}}, i64 8, i64 0)
// CHECK-LABEL: define {{.*}}@_ZN5table4manyEv(
// CHECK:       call void @obase_marked_delete_array(

// ATC-LABEL: define {{.*}}@_ZN6bucketD2Ev(
// ATC:       call void @obase_marked_atc_destroyed({{.*}}, i64 8)

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
void use() { std::puts("used"); }
static bucket one;
static owner two;
static void fill() {
    one.head = new node{1};
    two.held = std::make_unique<node>(2);
}
static int sum() { return one.head->key + two.held->key; }
static void drop() {
    delete one.head;
    one.head = nullptr;
    delete new without();
    delete new silent();
}
int main() {
    fill();
    std::printf("%d\n", sum());
    drop();
}
#endif
