// SPDX-License-Identifier: MIT
// RUN: %refuse++
// An array of structs is as good as one.
#include "marks.h"
#include <cstring>
struct node { int key; };
struct bucket { node* head OBASE_GUIDED; };
struct table { bucket buckets[8]; };
void shift(table& t) {
    // CHECK: error: 'memmove' copies the bytes of the marked field 'bucket::head' [obase:bytes]
    std::memmove(t.buckets, t.buckets + 1, 7 * sizeof t.buckets[0]);
}
