// SPDX-License-Identifier: MIT
// RUN: %refuse++
// The instance of a generic closure is looked at, not its pattern.
#include "marks.h"
#include <cstring>
struct node { int key; node* next OBASE_GUIDED; };
void copy(node* to, const node* from) {
    auto bytes = [](auto* a, const auto* b) {
        // CHECK: error: 'memcpy' copies the bytes of the marked field 'node::next' [obase:bytes]
        std::memcpy(static_cast<void*>(a), b, sizeof *a);
    };
    bytes(to, from);
}
