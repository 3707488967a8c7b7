// SPDX-License-Identifier: MIT
// RUN: %refuse++
// Default arguments and default member initializers run where the call or the object is: in a function
// that is no operation, a part of operations may not be called there either.
#include "marks.h"
struct cache;
OBASE_INTERNAL int peek(const cache* c = nullptr);
int add(int to, int by = peek());
int calls() { return add(1); }
// CHECK-DAG: internal_implied.cpp:[[#@LINE-1]]:{{.*}}error: 'peek' runs in the scope of its caller, but here it is called outside of any operation [obase:outside-operation]
// CHECK-DAG: internal_implied.cpp:[[#@LINE-3]]:{{.*}}note: by this default argument or member initializer
struct written {
    int key = peek();
    written() {}
    // CHECK-DAG: internal_implied.cpp:[[#@LINE-1]]:{{.*}}error: 'peek' runs in the scope of its caller
    // CHECK-DAG: internal_implied.cpp:[[#@LINE-3]]:{{.*}}note: by this default argument or member initializer
};
struct aggregate { int key = peek(); };
// CHECK-DAG: internal_implied.cpp:[[#@LINE-1]]:8: error: 'peek' runs in the scope of its caller
int in_braces() { return aggregate{}.key; }
// CHECK-DAG: internal_implied.cpp:[[#@LINE-1]]:{{.*}}error: 'peek' runs in the scope of its caller
int of_array() {
    const aggregate all[3] = {{1}};
    // CHECK-DAG: internal_implied.cpp:[[#@LINE-1]]:{{.*}}error: 'peek' runs in the scope of its caller
    return all[2].key;
}
int in_parentheses() { return aggregate().key; }
struct implied { const int key = peek(); virtual ~implied() = default; };
// CHECK-DAG: internal_implied.cpp:[[#@LINE-1]]:{{.*}}error: 'peek' runs in the scope of its caller
int makes() { return implied().key; }
struct defaulted {
    int key = peek();
    explicit defaulted(int k) : key(k) {}
    defaulted() = default;
    // CHECK-DAG: internal_implied.cpp:[[#@LINE-1]]:{{.*}}error: 'peek' runs in the scope of its caller
};
int also_makes() { return defaulted().key; }
struct base { explicit base(int k = peek()); };
struct derived : base { derived() {} };
// CHECK-DAG: internal_implied.cpp:[[#@LINE-1]]:{{.*}}error: 'peek' runs in the scope of its caller
struct again { again* next = new again{nullptr, peek()}; int key = peek(); };
again* ends() { return new again{}; }
// CHECK-DAG: internal_implied.cpp:[[#@LINE-1]]:{{.*}}error: 'peek' runs in the scope of its caller
struct range { OBASE_INTERNAL int* begin() const; int* end() const; };
int sum(const range& r) {
    int s = 0;
    for (int i : r) s += i;
    // CHECK-DAG: internal_implied.cpp:[[#@LINE-1]]:{{.*}}error: 'range::begin' runs in the scope of its caller
    return s;
}
OBASE_ENTRY int inside() { return add(1) + aggregate{}.key; }
