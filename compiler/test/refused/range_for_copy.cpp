// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct node { int key; };
struct bucket { node* head OBASE_GUIDED; };
struct table { bucket buckets[8]; };
int used(const table& t) {
    int count = 0;
    // CHECK: error: 'bucket' with the marked field 'bucket::head' is copied as a whole{{.*}}[obase:struct-copy]
    for (bucket b : t.buckets) count += b.head != nullptr;
    return count;
}
