// SPDX-License-Identifier: MIT
//
// Memory in which objects with marked fields were destroyed waits for the operations that are open, also if
// it is a library's function that frees it, and if no field has ever been used.
//
// REQUIRES: passes
// RUN: %obase-clang++ -O2 -c %s -o %t.o
// RUN: %plain-gcc++ -O2 -c %S/../inputs/watch_deletes.cpp -o %t.main.o
// RUN: %plain-gcc++ %t.o %t.main.o %library -o %t && %t
// RUN: %obase-clang++ -O0 --obase-protocol=atc -c %s -o %t.atc.o
// RUN: %plain-gcc++ -O2 -DATC -c %S/../inputs/watch_deletes.cpp -o %t.atc.main.o
// RUN: %plain-gcc++ %t.atc.o %t.atc.main.o %library -o %t.atc && %t.atc
#include "marks.h"
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>
struct node { int key; };
struct bucket {
    long words[8];
    node* head OBASE_GUIDED = nullptr;
    bucket() = default;
    bucket(const bucket&) = delete;
    ~bucket() { head = nullptr; }
};
extern const int kinds;
const int kinds = 11;
// Its destructor has nothing to do with the field.
int destroyed;
struct silent { ~silent() { ++destroyed; } long words[8]; node* head OBASE_GUIDED = nullptr; };
struct derived : silent { std::unique_ptr<int> other; };
auto& local_one() {
    struct local { ~local() { ++destroyed; } long words[8]; node* head OBASE_GUIDED = nullptr; };
    static std::unique_ptr<local> made;
    if (made == nullptr) made = std::make_unique<local>();
    return made;
}
std::unique_ptr<silent> quiet;
std::unique_ptr<derived> more;
std::unique_ptr<bucket> one;
std::unique_ptr<bucket[]> array;
std::shared_ptr<bucket> shared;
std::vector<bucket> vector;
std::deque<bucket> deque;
std::list<bucket> list;
std::map<int, bucket> map;
std::unordered_map<int, bucket> hash;
long* make_one(int kind) {
    switch (kind) {
    case 0: return (one = std::make_unique<bucket>())->words;
    case 1: return (array = std::make_unique<bucket[]>(3))[1].words;
    case 2: return (shared = std::make_shared<bucket>())->words;
    case 3: return (vector = std::vector<bucket>(5))[4].words;
    case 4: return deque.emplace_back().words;
    case 5: return list.emplace_back().words;
    case 6: return map[1].words;
    case 7: return hash[1].words;
    case 8: return (quiet = std::make_unique<silent>())->words;
    case 9: return (more = std::make_unique<derived>())->words;
    default: return local_one()->words;
    }
}
void drop_one(int kind) {
    switch (kind) {
    case 0: one.reset(); break;
    case 1: array.reset(); break;
    case 2: shared.reset(); break;
    case 3: std::vector<bucket>().swap(vector); break;
    case 4: std::deque<bucket>().swap(deque); break;
    case 5: list.clear(); break;
    case 6: map.clear(); break;
    case 7: hash.clear(); break;
    case 8: quiet.reset(); break;
    case 9: more.reset(); break;
    default: local_one().reset();
    }
}

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
static std::vector<bucket> filled(4);
static void fill(int key) { filled[static_cast<unsigned>(key) % 4].head = new node{key}; }
static int sum() {
    int all = 0;
    for (const bucket& b : filled) all += b.head->key;
    return all;
}
static void drop_all() {
    for (bucket& b : filled) {
        delete b.head;
        b.head = nullptr;
    }
}
int main() {
    for (int kind = 0; kind < kinds; ++kind) {
        make_one(kind)[0] = 1;
        drop_one(kind);
    }
    for (int key = 0; key < 4; ++key) fill(key);
    std::printf("%d %d\n", sum(), destroyed);
    drop_all();
    filled.clear();
}
#endif
