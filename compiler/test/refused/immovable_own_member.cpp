// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct cursor {
    int first;
    int* at;
    explicit cursor(int f) : first(f), at(&first) {}
};
struct list {
    // CHECK: error: 'list::head' is marked{{.*}}'cursor::at' is set to an address within its own object [obase:immovable]
    cursor* head OBASE_GUIDED;
};
bool empty(const list& l) { return l.head == nullptr; }
