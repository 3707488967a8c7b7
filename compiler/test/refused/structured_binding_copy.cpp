// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
int peek(const node& n) {
    // CHECK: error: 'node' with the marked field 'node::next' is copied as a whole{{.*}}[obase:struct-copy]
    auto [key, next] = n;
    return key + (next == nullptr);
}
