// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
unsigned long word(node& n) {
    // CHECK: error: the marked field 'node::next' is looked at as a 'unsigned long' [obase:cast]
    return reinterpret_cast<unsigned long&>(n.next);
}
