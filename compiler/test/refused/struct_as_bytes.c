// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
struct node { int key; struct node* next OBASE_GUIDED; };
unsigned hash(const struct node* n) {
    unsigned sum = 0;
    // CHECK: error: a struct with the marked field 'node::next' is looked at as 'const unsigned char' [obase:cast]
    const unsigned char* bytes = (const unsigned char*)n;
    for (size_t i = 0; i < sizeof *n; ++i) sum = 31 * sum + bytes[i];
    return sum;
}
