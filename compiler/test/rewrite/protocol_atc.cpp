// SPDX-License-Identifier: MIT
// --protocol=atc: the calls that are written are those of atc, and what the header stands for, too.
// RUN: rm -rf %t && mkdir -p %t
// RUN: %rewrite --protocol=atc --out=%t/atc --root=%S %s -- -std=c++20
// RUN: sed "/CHECK\\|ARMING/d" %t/atc/protocol_atc.cpp | %filecheck --match-full-lines %s
// RUN: %plain-clang++ -O1 -c %t/atc/protocol_atc.cpp -o %t/clang.o
// RUN: %plain-gcc++ -O1 -c %t/atc/protocol_atc.cpp -o %t/gcc.o
// RUN: nm %t/clang.o %t/gcc.o | %filecheck --check-prefix=NAMES --implicit-check-not="U obase_marked_{{[^au]}}" %s
// NAMES-DAG: U obase_marked_atc_compare_exchange
// NAMES-DAG: U obase_marked_atc_delete
// NAMES-DAG: U obase_marked_atc_enter
// NAMES-DAG: U obase_marked_atc_destroyed
// NAMES-DAG: U obase_marked_atc_free
// NAMES-DAG: U obase_marked_atc_leave
// NAMES-DAG: U obase_marked_atc_load
// NAMES-DAG: U obase_marked_atc_malloc
// NAMES-DAG: U obase_marked_atc_new
// NAMES-DAG: U obase_marked_atc_store
// NAMES-DAG: U obase_marked_unit

// Arming is what the result is without, and the same is written if it is said.
// RUN: %rewrite --out=%t/arming --root=%S %s -- -std=c++20
// RUN: %rewrite --protocol=arming --out=%t/said --root=%S %s -- -std=c++20
// RUN: cmp %t/arming/protocol_atc.cpp %t/said/protocol_atc.cpp
// RUN: sed "/CHECK\\|ARMING/d" %t/arming/protocol_atc.cpp | %filecheck --check-prefix=ARMING --match-full-lines %s
#include <obase/marked.h>
#include <atomic>
#include <cstdlib>
class list {
  public:
    ~list() {
        while (head_) pop();
    }
    void push(int key) {
        auto* name = static_cast<char*>(std::malloc(8));
        head_ = new node{key, name, head_};
    }
    bool replace(int key) {
        node* old = last_.load();
        node* fresh = new node{key, nullptr, nullptr};
        if (!last_.compare_exchange_strong(old, fresh)) {
            delete fresh;
            return false;
        }
        delete old;
        return true;
    }

  private:
    struct node {
        int key;
        char* name OBASE_GUIDED;
        node* next OBASE_GUIDED;
    };
    void pop() {
        node* gone = head_;
        head_ = gone->next;
        std::free(gone->name);
        delete gone;
    }
    node* head_ OBASE_GUIDED = nullptr;
    std::atomic<node*> last_ OBASE_GUIDED;
};
int main() {
    list l;
    l.push(1);
    return l.replace(2) ? 0 : 1;
}
// CHECK: /* Made by obase-rewrite from protocol_atc.cpp. */
// CHECK-NEXT: #define OBASE_PROTOCOL_ATC
// CHECK-NEXT: #include <obase/marked_access.h>
// CHECK-NEXT: #line 1 "protocol_atc.cpp"
// CHECK: auto* name = static_cast<char*>(obase_marked_atc_malloc(8));
// CHECK-NEXT: obase_slot_store(head_, new (obase_managed) node{key, name, obase_slot_load(head_)});
// CHECK: obase_marked_atc_free(obase_slot_load(gone->name));
// ARMING: /* Made by obase-rewrite from protocol_atc.cpp. */
// ARMING-NEXT: #include <obase/marked_access.h>
// ARMING: obase_marked_free(obase_slot_load(gone->name));
