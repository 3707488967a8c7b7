// SPDX-License-Identifier: MIT
// RUN: %obase-clang++ -c -O0 --obase-visibility=%t.txt -o %t.o %s
// RUN: %filecheck --input-file=%t.txt %s
// Which functions are operations. Order is that of the source.
#include "marks.h"
struct plain { int key; };
class list {
    struct node;
  public:
    list() = default;
    list(const list&) = delete;
    explicit list(int key) { push(key); }
    ~list() { clear(); }
    void push(int key);
    bool has(int key) const { return find(key) != nullptr; }
    static int version() { return 1; }
  protected:
    void clear();
  private:
    struct node {
        int key;
        node* next OBASE_GUIDED;
        bool is(int k) const { return key == k; }
    };
    node* find(int key) const;
    node* head_ OBASE_GUIDED = nullptr;
};
void list::push(int key) { head_ = new node{key, head_}; }
void list::clear() {
    while (head_ != nullptr) {
        node* n = head_;
        head_ = n->next;
        delete n;
    }
}
list::node* list::find(int key) const {
    for (node* n = head_; n != nullptr; n = n->next)
        if (n->is(key)) return n;
    return nullptr;
}
int free_function(const plain& p) { return p.key; }
int main() {
    list l(list::version());
    return l.has(1) && free_function({0}) == 0 ? 0 : 1;
}
// CHECK: # obase visibility, format 1
// CHECK: unit{{.*}}roles.cpp
// CHECK: mark	list::node::next	{{.*}}	{{.*}}roles.cpp:[[#]]	source
// CHECK: mark	list::head_	{{.*}}	{{.*}}roles.cpp:[[#]]	source
// CHECK-NOT: free_function
// CHECK-NOT: main
// CHECK-DAG: entry	list::list(int)	{{_ZN4listC[12]Ei.*}}	{{.*}}	method of 'list', which works on the marked field 'list::head_'
// CHECK-DAG: entry	list::~list()
// CHECK-DAG: entry	list::has(int)	_ZNK4list3hasEi
// CHECK-DAG: entry	list::version()
// CHECK-DAG: internal	list::node::is(int)
// CHECK-DAG: entry	list::push(int)	_ZN4list4pushEi	{{.*}}	names the marked field 'list::head_'
// CHECK-DAG: internal	list::clear()
// CHECK-DAG: internal	list::find(int)
