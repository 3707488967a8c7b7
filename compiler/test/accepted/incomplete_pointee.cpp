// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
class secret;
struct holder { secret* held OBASE_GUIDED; };
bool empty(const holder& h) { return h.held == nullptr; }
