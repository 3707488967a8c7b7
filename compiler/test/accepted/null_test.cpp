// SPDX-License-Identifier: MIT
//
// A test for null is no access. It needs no scope if the memory is the caller's; who finds the memory
// needs one, because it may be freed, and so does an entry that has others look at it.
//
// REQUIRES: passes
// RUN: %obase-clang++ -O1 -S -emit-llvm %s -o - | %filecheck %s
#include "marks.h"
#include <atomic>
struct node { int key; };
struct bucket {
    __attribute__((noinline)) OBASE_ENTRY bool is_empty() const { return head == nullptr; }
    node* head OBASE_GUIDED;
};
struct table {
    long mask;
    bucket buckets[64];
    std::atomic<node*> spare OBASE_GUIDED;
};
std::atomic<table*> current;
void elsewhere();

// CHECK-LABEL: define {{.*}}@_Z5spareRK5table(
// CHECK-NOT:   obase_marked
// CHECK:       and i64 {{.*}}, 281474976710655
// CHECK-NOT:   obase_marked
// CHECK:       ret i1
OBASE_ENTRY bool spare(const table& t) { return t.spare.load() != nullptr; }

// CHECK-LABEL: define {{.*}}@_Z5foundi(
// CHECK:       @obase_marked_enter
// CHECK:       ret i1
OBASE_ENTRY bool found(int i) { return current.load()->buckets[i].head != nullptr; }

// CHECK-LABEL: define {{.*}}@_Z16found_by_anotheri(
// CHECK:       @obase_marked_enter
// CHECK:       ret i1
OBASE_ENTRY bool found_by_another(int i) { return current.load()->buckets[i].is_empty(); }

// CHECK-LABEL: define {{.*}}@_Z15asked_elsewhereRK5table(
// CHECK:       @obase_marked_enter
// CHECK:       ret i1
OBASE_ENTRY bool asked_elsewhere(const table& t) {
    elsewhere();
    return t.spare.load() != nullptr;
}

// CHECK-LABEL: define {{.*}}@_Z15found_by_helperi(
// CHECK:       @obase_marked_enter
// CHECK:       ret i1
static bool helper(const bucket& b) { return b.is_empty(); }
OBASE_ENTRY bool found_by_helper(int i) { return helper(current.load()->buckets[i]); }

// CHECK-LABEL: define {{.*}}@_Z9passed_onRK6bucket(
// CHECK-NOT:   obase_marked
// CHECK:       ret i1
OBASE_ENTRY bool passed_on(const bucket& b) { return b.is_empty(); }

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
void elsewhere() {}
static table all;
static void fill() {
    all.buckets[3].head = new node{1};
    all.spare.store(new node{2});
    current.store(&all);
}
static int sum() { return all.buckets[3].head->key + all.spare.load()->key; }
int main() {
    const bool before = passed_on(all.buckets[3]);
    fill();
    std::printf("%d %d %d %d %d %d %d %d\n", before, spare(all), found(3), found_by_another(3), asked_elsewhere(all),
                found_by_helper(3), found_by_helper(4), sum());
}
#endif
