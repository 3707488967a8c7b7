// SPDX-License-Identifier: MIT
// A list, before and after.
// RUN: rm -rf %t && %rewrite --out=%t --root=%S %s -- -std=c++20
// RUN: sed /CHECK/d %t/list.cpp | %filecheck --match-full-lines %s
// RUN: %plain-clang++ -c %t/list.cpp -o %t/list.o
// RUN: %plain-gcc++ -c %t/list.cpp -o %t/list.o
#include <obase/marked.h>
class list {
  public:
    ~list() {
        while (head_ != nullptr) pop();
    }
    void push(int key) { head_ = new node{key, head_}; }
    bool has(int key) const {
        for (node* n = head_; n != nullptr; n = n->next)
            if (n->key == key) return true;
        return false;
    }
    void pop() {
        node* gone = head_;
        head_ = gone->next;
        delete gone;
    }
    bool empty() const { return !head_; }
    int size() const { return size_; }

  private:
    struct node {
        int key;
        node* next OBASE_GUIDED;
    };
    node* head_ OBASE_GUIDED = nullptr;
    int size_ = 0;
};
int main() {
    list l;
    l.push(1);
    return l.has(1) ? 0 : 1;
}
// CHECK: /* Made by obase-rewrite from list.cpp. */
// CHECK-NEXT: #include <obase/marked_access.h>
// CHECK-NEXT: #line 1 "list.cpp"
// CHECK: class list : obase::destroyed_in_operation<class list> { public: OBASE_SLOTTED_CLASS private:
// CHECK-NEXT:   public:
// CHECK-NEXT:     ~list() { OBASE_DESTRUCTION;
// CHECK-NEXT:         while (!obase_slot_is_null(head_)) pop();
// CHECK-NEXT:     }
// CHECK-NEXT:     void push(int key) { OBASE_OPERATION; obase_slot_store(head_, new (obase_managed) node{key, obase_slot_load(head_)}); }
// CHECK-NEXT:     bool has(int key) const { OBASE_OPERATION;
// CHECK-NEXT:         for (node* n = obase_slot_load(head_); n != nullptr; n = obase_slot_load(n->next))
// CHECK-NEXT:             if (n->key == key) return true;
// CHECK-NEXT:         return false;
// CHECK-NEXT:     }
// CHECK-NEXT:     void pop() { OBASE_OPERATION;
// CHECK-NEXT:         node* gone = obase_slot_load(head_);
// CHECK-NEXT:         obase_slot_store(head_, obase_slot_load(gone->next));
// CHECK-NEXT:         delete gone;
// CHECK-NEXT:     }
// CHECK-NEXT:     bool empty() const { OBASE_OPERATION; return obase_slot_is_null(head_); }
// CHECK-NEXT:     int size() const { return size_; }
// CHECK:     struct node { OBASE_MANAGED_NEW OBASE_SLOTTED_CLASS
// CHECK-NEXT:         int key;
// CHECK-NEXT:         OBASE_SLOT(node*) next;
// CHECK-NEXT:     };
// CHECK-NEXT:     OBASE_SLOT(node*) head_ = nullptr;
// CHECK-NEXT:     int size_ = 0;
// CHECK: int main() {
