// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
#include <string>
struct entry { std::string key; };
struct bucket {
    // CHECK: error: 'bucket::head' is marked, but the objects it points to, of type 'entry', cannot be moved by their bytes: 'entry::key': 'std::basic_string' cannot be moved by its bytes: short strings point into themselves [obase:immovable]
    entry* head OBASE_GUIDED;
    // CHECK: note: replace that member
};
bool empty(const bucket& b) { return b.head == nullptr; }
