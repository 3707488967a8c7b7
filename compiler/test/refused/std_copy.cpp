// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
#include <algorithm>
struct node { int key; };
// CHECK: error: {{.*}}'bucket::head'{{.*}}instantiated for this type [obase:bytes]
// CHECK: error: {{.*}}'bucket::head'{{.*}}instantiated for this type [obase:struct-copy]
struct bucket { node* head OBASE_GUIDED; };
void copy(const bucket* from, bucket* to) { std::copy(from, from + 4, to); }
