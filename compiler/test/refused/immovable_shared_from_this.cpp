// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
#include <memory>
struct session : std::enable_shared_from_this<session> { int id; };
struct list {
    // CHECK: error: 'list::head' is marked{{.*}}std::shared_ptr keeps its address [obase:immovable]
    session* head OBASE_GUIDED;
};
bool empty(const list& l) { return l.head == nullptr; }
