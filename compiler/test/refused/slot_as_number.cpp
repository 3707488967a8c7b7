// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
#include <cstdint>
struct node { int key; node* next OBASE_GUIDED; };
std::uintptr_t place(node* n) {
    // CHECK: error: the address of the slot 'node::next' becomes a {{.*}}uintptr_t' [obase:cast]
    return reinterpret_cast<std::uintptr_t>(&n->next);
}
