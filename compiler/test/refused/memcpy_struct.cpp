// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
#include <cstring>
struct node { int key; node* next OBASE_GUIDED; };
void copy(node& to, const node& from) {
    // CHECK: error: 'memcpy' copies the bytes of the marked field 'node::next' [obase:bytes]
    std::memcpy(static_cast<void*>(&to), &from, sizeof to);
}
