// SPDX-License-Identifier: MIT
// An operation that is a destructor ends after the members and the bases.
// RUN: rm -rf %t && %rewrite --out=%t --root=%S %s -- -std=c++20
// RUN: sed /CHECK/d %t/destructor.cpp | %filecheck %s
// RUN: %plain-clang++ -c %t/destructor.cpp -o %t/destructor.o
// RUN: %plain-gcc++ -c %t/destructor.cpp -o %t/destructor.o
#include <obase/marked.h>

#include <memory>
#include <string>
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

// An aggregate stays one.
// CHECK: struct chain { OBASE_SLOTTED_CLASS
// CHECK: ~chain() { OBASE_DESTRUCTION_OF_AGGREGATE; clear(&first); }
struct chain {
    node* first OBASE_GUIDED;
    int length = 0;
    std::string name;
    ~chain() { clear(&first); }
};

// With bases; and written outside of the class, which has names like those of obase.
namespace lists {
class table {
  public:
    struct body {
        double coordinates[4];
    };
    // CHECK: struct row : obase::destroyed_in_operation<struct row>, private chain {
    struct row : private chain {
        explicit row(int n) : chain{nullptr, n, "row"} {}
        virtual ~row();
    };
    table() = default;
    ~table();
    void add() { rows_.push_back(std::make_unique<row>(1)); }
    static constexpr auto size = sizeof(body);

  private:
    node* spare_ OBASE_GUIDED = nullptr;
    std::vector<std::unique_ptr<row>> rows_;
    int table_destroyed = 0;
};
} // namespace lists
// CHECK: lists::table::row::~row() { OBASE_DESTRUCTION; clear(&first); }
lists::table::row::~row() { clear(&first); }
// CHECK: lists::table::~table() { OBASE_DESTRUCTION; clear(&spare_); }
lists::table::~table() { clear(&spare_); }

// Of templates; a brace on a line of its own.
// CHECK: template <class Value, int... Numbers> class heap final
// CHECK-NEXT: : obase::destroyed_in_operation<heap<Value, Numbers...>> { public: OBASE_SLOTTED_CLASS
template <class Value, int... Numbers> class heap final
{
  public:
    heap() = default;
    // CHECK: ~heap() { OBASE_DESTRUCTION; clear(&first_); }
    ~heap() { clear(&first_); }

  private:
    Value value_{};
    node* first_ OBASE_GUIDED = nullptr;
};
// CHECK: class heap<Value*> : obase::destroyed_in_operation<heap<Value*>>, heap_base {
struct heap_base {};
template <class Value> class heap<Value*> : heap_base {
  public:
    heap() = default;
    // CHECK: ~heap() { OBASE_DESTRUCTION; clear(&first_); }
    ~heap() { clear(&first_); }

  private:
    node* first_ OBASE_GUIDED = nullptr;
};

// One whose members hold slots elsewhere, and one without any.
// CHECK: class owner : obase::destroyed_in_operation<class owner> {
class owner {
  public:
    explicit owner(chain& of) : of_(of) {}
    // CHECK: ~owner() { OBASE_DESTRUCTION; clear(&of_.first); }
    ~owner() { clear(&of_.first); }

  private:
    chain& of_;
    std::vector<chain> chains_;
};
// CHECK: class guard {
class guard {
  public:
    explicit guard(chain& of) : of_(of) {}
    // CHECK: ~guard() { OBASE_OPERATION; clear(&of_.first); }
    ~guard() { clear(&of_.first); }

  private:
    chain& of_;
};

// One that reaches no slot is no operation, and an implicit one ends them by itself. CHECK: struct
// counted {
struct counted {
    int* count;
    ~counted() { ++*count; }
};
// CHECK: struct holder { OBASE_SLOTTED_CLASS
struct holder {
    node* one OBASE_GUIDED = nullptr;
    heap<int> more;
};

chain made() { return {nullptr, 3, "made"}; }

int main() {
    // CHECK: chain a{nullptr, 1, "a"};
    chain a{nullptr, 1, "a"};
    chain b{.first = nullptr, .length = 2, .name = "b"};
    chain c{made()};
    lists::table rows;
    rows.add();
    heap<int> numbers;
    heap<heap<heap<int>>, 1, 2> nested;
    heap<int*> others;
    holder h;
    owner o(a);
    guard g(b);
    static_assert(sizeof(heap<int>) == 16 && sizeof(heap<heap<int>>) == 24 && sizeof(heap<int*>) == 8);
    return a.length + b.length + c.length + static_cast<int>(lists::table::size);
}
