// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
#include <memory>
#include <string>
struct list {
    // CHECK: error: 'list::name' is marked{{.*}}short strings point into themselves [obase:immovable]
    std::unique_ptr<std::string> name OBASE_GUIDED;
};
bool empty(const list& l) { return l.name == nullptr; }
