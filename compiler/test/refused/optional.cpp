// SPDX-License-Identifier: MIT
// RUN: %refuse++
// The library keeps the value in a union.
#include "marks.h"
#include <optional>
struct node { int key; };
// CHECK: error: a union holds the marked field 'list::head'{{.*}}in a library's code that was instantiated for this type [obase:union]
struct list { node* head OBASE_GUIDED = nullptr; };
bool any(const std::optional<list>& l) { return l.has_value(); }
