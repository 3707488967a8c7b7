// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
#include <utility>
struct node { int key; };
// CHECK: error: 'bucket' with the marked field 'bucket::head' is {{copied|assigned}} as a whole{{.*}}[obase:struct-copy]
struct bucket { node* head OBASE_GUIDED; };
void exchange(bucket& a, bucket& b) { std::swap(a, b); }
