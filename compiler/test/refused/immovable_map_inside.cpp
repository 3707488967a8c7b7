// SPDX-License-Identifier: MIT
// RUN: %refuse++
// However deep it is.
#include "marks.h"
#include <map>
struct index { std::map<int, int> rows; };
struct page { int number; index by_key[2]; };
struct table {
    // CHECK: error: 'table::first' is marked{{.*}}'page::by_key': 'index::rows': 'std::map'{{.*}}[obase:immovable]
    page* first OBASE_GUIDED;
};
bool empty(const table& t) { return t.first == nullptr; }
