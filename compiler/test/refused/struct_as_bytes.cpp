// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
unsigned first_byte(const node& n) {
    // CHECK: error: a struct with the marked field 'node::next' is looked at as 'const unsigned char' [obase:cast]
    return *reinterpret_cast<const unsigned char*>(&n);
}
