// SPDX-License-Identifier: MIT
// What holds the address of a slot, or refers to one, says so in its type.
// RUN: rm -rf %t && %rewrite --out=%t --root=%S %s -- -std=c++20
// RUN: sed /CHECK/d %t/links.cpp | %filecheck --match-full-lines %s
// RUN: %plain-clang++ -c %t/links.cpp -o %t/links.o
// RUN: %plain-gcc++ -c %t/links.cpp -o %t/links.o
#include <obase/marked.h>
#include <utility>
class tree {
  public:
    void insert(int key) { insert_below(root_, key); }
    void erase_least() {
        node** link = &root_;
        while ((*link)->child[0] != nullptr) link = &(*link)->child[0];
        node* gone = std::exchange(*link, nullptr);
        delete gone;
    }
    void mirror(int key) {
        if (node** link = find(key); *link) std::swap((*link)->child[0], (*link)->child[1]);
    }

  private:
    struct node {
        int key;
        node* child[2] OBASE_GUIDED;
    };
    static void insert_below(node*& at, int key) {
        if (at == nullptr)
            at = new node{key, {nullptr, nullptr}};
        else
            insert_below(at->child[key > at->key], key);
    }
    node** find(int key) {
        auto* link = &root_;
        while (*link && (*link)->key != key) link = &(*link)->child[key > (*link)->key];
        return link;
    }
    node* root_ OBASE_GUIDED = nullptr;
};
int main() {
    tree t;
    t.insert(2);
    t.insert(1);
    t.mirror(2);
    t.erase_least();
}
// CHECK:     void insert(int key) { OBASE_OPERATION; insert_below(root_, key); }
// CHECK-NEXT:     void erase_least() { OBASE_OPERATION;
// CHECK-NEXT:         OBASE_SLOT(node*)* link = &root_;
// CHECK-NEXT:         while (!obase_slot_is_null(obase_slot_load(*link)->child[0])) link = &obase_slot_load(*link)->child[0];
// CHECK-NEXT:         node* gone = obase_slot_exchange(*link, nullptr);
// CHECK:         if (OBASE_SLOT(node*)* link = find(key); !obase_slot_is_null(*link)) obase_slot_swap(obase_slot_load(*link)->child[0], obase_slot_load(*link)->child[1]);
// CHECK:         OBASE_SLOT(node*) child[2];
// CHECK:     static void insert_below(OBASE_SLOT(node*)& at, int key) {
// CHECK-NEXT:         if (obase_slot_is_null(at))
// CHECK-NEXT:             obase_slot_store(at, new (obase_managed) node{key, {nullptr, nullptr}});
// CHECK-NEXT:         else
// CHECK-NEXT:             insert_below(obase_slot_load(at)->child[key > obase_slot_load(at)->key], key);
// CHECK:     OBASE_SLOT(node*)* find(int key) {
// CHECK-NEXT:         auto* link = &root_;
