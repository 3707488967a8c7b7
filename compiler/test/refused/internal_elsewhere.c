// SPDX-License-Identifier: MIT
// RUN: %refuse
// An internal function of another translation unit, called outside of any operation.
#include "marks.h"
struct cache;
const char* cache_text(const struct cache* c, int number) OBASE_INTERNAL;
int cache_is_empty(const struct cache* c) { return *cache_text(c, 0) == 0; }
// CHECK: error: 'cache_text' runs in the scope of its caller, but here it is called outside of any operation [obase:outside-operation]
