// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
#include <list>
struct bucket {
    // CHECK: error: 'bucket::entries' is marked{{.*}}its nodes point back to it [obase:immovable]
    std::list<int>* entries OBASE_GUIDED;
};
bool empty(const bucket& b) { return b.entries == nullptr; }
