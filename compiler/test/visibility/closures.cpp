// SPDX-License-Identifier: MIT
// RUN: %obase-clang++ -c -O0 --obase-visibility=%t.txt -o %t.o %s
// RUN: %filecheck --input-file=%t.txt %s
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
template <class F> void run(F f) { f(); }
class list {
  public:
    int here() const {
        // CHECK-DAG: internal	{{.*}}operator()(){{.*}}closures.cpp:[[#@LINE+1]]{{.*}}closure that is only called where it is written
        const auto first = [&] { return head_ != nullptr ? head_->key : 0; };
        return first();
    }
    int passed() const {
        int key = 0;
        // CHECK-DAG: entry	{{.*}}operator()(){{.*}}closures.cpp:[[#@LINE+1]]{{.*}}closure that is stored or passed, and may run in another thread
        run([&] { key = head_ != nullptr ? head_->key : 0; });
        return key;
    }
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
int use(const list& l) { return l.here() + l.passed(); }
