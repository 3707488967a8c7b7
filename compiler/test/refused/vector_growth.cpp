// SPDX-License-Identifier: MIT
// RUN: %refuse++
// A vector moves elements that are trivially copyable by their bytes when it grows.
#include "marks.h"
#include <vector>
struct node { int key; };
// CHECK-DAG: vector_growth.cpp:[[#@LINE+1]]:{{.*}}error: {{.*}}marked field 'bucket::head'{{.*}}in a library's code that was instantiated for this type [obase:bytes]
struct bucket { node* head OBASE_GUIDED; };
// CHECK-DAG: error: {{.*}}[obase:struct-copy]
// CHECK-DAG: note: it happens here
void grow(std::vector<bucket>& buckets) { buckets.push_back(bucket{}); }
