// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
struct value { int number; };
struct named { int name = 0; };
struct linked { linked* next OBASE_GUIDED = nullptr; };
struct item : named, linked { value* v OBASE_GUIDED = nullptr; };
int number(const item& i) { return i.next == nullptr && i.v != nullptr ? i.v->number : i.name; }

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
static item all;
static void set(int to) { all.v = new value{to}; }
int main() {
    const int none = number(all);
    set(4);
    std::printf("%d %d\n", none, number(all));
}
#endif
