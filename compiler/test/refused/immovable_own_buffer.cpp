// SPDX-License-Identifier: MIT
// RUN: %refuse++
// Text that lies in the object while it is short.
#include "marks.h"
struct text {
    char* begin = inside;
    char inside[16];
};
struct list {
    // CHECK: error: 'list::head' is marked{{.*}}'text::begin' is set to an address within its own object [obase:immovable]
    text* head OBASE_GUIDED;
};
bool empty(const list& l) { return l.head == nullptr; }
