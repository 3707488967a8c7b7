// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
unsigned long word(const node& n) {
    // CHECK: error: a bit cast reads or makes the bytes of the marked field 'node::next'{{.*}}[obase:cast]
    return __builtin_bit_cast(unsigned long, n.next);
}
