// SPDX-License-Identifier: MIT
// Memory that has slots and is no managed object: delete waits for the operations that are open.
// RUN: rm -rf %t && %rewrite --out=%t --root=%S %s -- -std=c++20
// RUN: sed /CHECK/d %t/slotted_delete.cpp | %filecheck --match-full-lines %s
// RUN: %plain-clang++ -O2 -c %t/slotted_delete.cpp -o %t/clang.o
// RUN: %plain-gcc++ -O2 -c %t/slotted_delete.cpp -o %t/gcc.o
// RUN: %plain-gcc++ -O2 -c %S/../inputs/watch_deletes.cpp -o %t/main.o
// RUN: %plain-gcc++ %t/clang.o %t/main.o %library -o %t/clang && %t/clang
// RUN: %plain-gcc++ %t/gcc.o %t/main.o %library -o %t/gcc && %t/gcc

// RUN: %rewrite --protocol=atc --out=%t/atc --root=%S %s -- -std=c++20
// RUN: %plain-gcc++ -O2 -c %t/atc/slotted_delete.cpp -o %t/atc.o
// RUN: %plain-gcc++ -O2 -DATC -c %S/../inputs/watch_deletes.cpp -o %t/main.o
// RUN: %plain-gcc++ %t/atc.o %t/main.o %library -o %t/atc/program && %t/atc/program
#include <obase/marked.h>
#include <memory>
#include <new>
struct node {
    int key;
    node* next OBASE_GUIDED;
};
struct bucket {
    long words[8];
    node* head OBASE_GUIDED = nullptr;
};
class table {
    bucket both_[2];

  public:
    long* words() { return both_[0].words; }
};
struct named_table : table {
    char name[8];
};
struct alignas(64) wide {
    long words[8];
    node* head OBASE_GUIDED = nullptr;
};
template <class T>
struct box {
    long words[8];
    T* held OBASE_GUIDED = nullptr;
};
struct pooled {
    static void operator delete(void* address) { ::operator delete(address); }
    node* head OBASE_GUIDED = nullptr;
};
struct payload {
    long words[8];
};
box<payload> global;
template struct box<char>;
// CHECK: struct node { OBASE_MANAGED_NEW OBASE_SLOTTED_CLASS
// CHECK: struct bucket { OBASE_SLOTTED_CLASS
// CHECK: class table { public: OBASE_SLOTTED_CLASS private:
// CHECK: struct named_table : table { OBASE_SLOTTED_CLASS
// CHECK: struct alignas(64) wide { OBASE_SLOTTED_CLASS
// CHECK: struct box { OBASE_SLOTTED_CLASS
// CHECK: struct pooled {
// CHECK: struct payload { OBASE_MANAGED_CLASS
extern const int kinds;
const int kinds = 6;
void* object = nullptr;
long* make_table() {
    auto* fresh = new named_table;
    object = fresh;
    return fresh->words();
}
long* make_one(int kind) {
    switch (kind) {
    case 0:
        object = new bucket;
        return static_cast<bucket*>(object)->words;
    case 1:
        return make_table();
    case 2:
        object = new bucket[2];
        return static_cast<bucket*>(object)[0].words;
    case 3:
        object = new wide;
        return static_cast<wide*>(object)->words;
    case 4:
        object = std::make_unique<box<payload>>().release();
        return static_cast<box<payload>*>(object)->words;
    default:
        object = new (std::nothrow) bucket;
        return static_cast<bucket*>(object)->words;
    }
}
void drop_one(int kind) {
    switch (kind) {
    case 1:
        delete static_cast<named_table*>(object);
        return;
    case 2:
        delete[] static_cast<bucket*>(object);
        return;
    case 3:
        delete static_cast<wide*>(object);
        return;
    case 4:
        std::unique_ptr<box<payload>>(static_cast<box<payload>*>(object)).reset();
        return;
    default:
        delete static_cast<bucket*>(object);
    }
}
