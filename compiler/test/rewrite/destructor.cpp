// SPDX-License-Identifier: MIT
// An operation that is a destructor ends after the members and the bases.
// RUN: rm -rf %t && %rewrite --out=%t --root=%S %s -- -std=c++20
// RUN: sed /CHECK/d %t/destructor.cpp | %filecheck %s
// RUN: %plain-clang++ -c %t/destructor.cpp -o %t/destructor.o
// RUN: %plain-gcc++ -c %t/destructor.cpp -o %t/destructor.o
#include <obase/marked.h>

#include <memory>
#include <vector>

struct node {
    node* next OBASE_GUIDED = nullptr;
};

OBASE_INTERNAL void clear(node** first) {
    while (node* gone = *first) {
        *first = gone->next;
        delete gone;
    }
}

// An aggregate: its values come after the base.
// CHECK: struct chain : obase::destroyed_in_operation<struct chain_destroyed> { OBASE_SLOTTED_CLASS
// CHECK: ~chain() { OBASE_DESTRUCTION(chain_destroyed); clear(&first); }
struct chain {
    node* first OBASE_GUIDED;
    int length = 0;
    ~chain() { clear(&first); }
};
// CHECK: class open_chain : public obase::destroyed_in_operation<struct open_chain_destroyed> { public:
class open_chain {
  public:
    node* first OBASE_GUIDED;
    ~open_chain() { clear(&first); }
};

// With bases; and written outside of the class, in another namespace.
namespace lists {
class table {
  public:
    // CHECK: struct row : obase::destroyed_in_operation<struct table_row_destroyed>, private chain {
    struct row : private chain {
        explicit row(int n) : chain{nullptr, n} {}
        virtual ~row();
    };
    table() = default;
    ~table();
    void add() { rows_.push_back(std::make_unique<row>(1)); }

  private:
    // CHECK: OBASE_SLOT(node*) spare_ = nullptr;
    node* spare_ OBASE_GUIDED = nullptr;
    std::vector<std::unique_ptr<row>> rows_;
};
} // namespace lists
// CHECK: lists::table::row::~row() { OBASE_DESTRUCTION(table_row_destroyed); clear(&first); }
lists::table::row::~row() { clear(&first); }
// CHECK: lists::table::~table() { OBASE_DESTRUCTION(table_destroyed); clear(&spare_); }
lists::table::~table() { clear(&spare_); }

// Of a template, for whatever arguments; a brace on a line of its own.
// CHECK: template <class Value> class heap final
// CHECK-NEXT: : obase::destroyed_in_operation<struct heap_destroyed> { public: OBASE_SLOTTED_CLASS
template <class Value> class heap final
{
  public:
    heap() = default;
    // CHECK: ~heap() { OBASE_DESTRUCTION(heap_destroyed); clear(&first_); }
    ~heap() { clear(&first_); }

  private:
    node* first_ OBASE_GUIDED = nullptr;
    Value value_{};
};

// One that reaches no slot is none, and one that nobody wrote ends them by itself.
// CHECK: struct counted {
struct counted {
    int* count;
    ~counted() { ++*count; }
};
// CHECK: struct holder { OBASE_SLOTTED_CLASS
struct holder {
    node* one OBASE_GUIDED = nullptr;
    heap<int> more;
};

int main() {
    // CHECK: chain a{{[{][{]}}}, nullptr, 1};
    chain a{nullptr, 1};
    // CHECK: chain c{};
    chain c{};
    // CHECK: const chain two[] = {{[{][{][{]}}}, nullptr, 1}, {{[{][{]}}}, nullptr}};
    const chain two[] = {{nullptr, 1}, {nullptr}};
    open_chain e{};
    lists::table rows;
    rows.add();
    heap<int> numbers;
    heap<long> longer;
    holder h;
    static_assert(sizeof(chain) == 16 && sizeof(open_chain) == 8 && sizeof(heap<int>) == 16);
    return a.length + c.length + two[0].length;
}
