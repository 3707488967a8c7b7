// SPDX-License-Identifier: MIT
// Destructors that are operations, of classes that get no further base.
// RUN: rm -rf %t && not %rewrite --out=%t --root=%S %s -- -std=c++20 -fno-caret-diagnostics 2>&1 | %filecheck %s
// RUN: not ls %t
#include <obase/marked.h>

#include <vector>

struct node {
    node* next OBASE_GUIDED = nullptr;
};
struct bucket {
    node* first OBASE_GUIDED = nullptr;
};
// CHECK: destructor_refused.cpp:[[#@LINE+1]]:8: error: 'table', whose destructor is an operation, is an aggregate with marked fields in the memory of its members
struct table {
    std::vector<bucket> buckets;
    ~table() {
        for (bucket& b : buckets) delete b.first;
    }
};
// CHECK: destructor_refused.cpp:[[#@LINE+1]]:24: error: 'chain' has a destructor that is an operation, and a template parameter without a name
template <class> class chain {
  public:
    chain() = default;
    ~chain() { delete first_; }

  private:
    node* first_ OBASE_GUIDED = nullptr;
};

int main() {
    table t;
    chain<int> c;
}
