// SPDX-License-Identifier: MIT
// RUN: %refuse++
// A move that the compiler writes leaves the address in the source, too.
#include "marks.h"
#include <utility>
struct node { int key; };
class list {
  public:
    list() = default;
    list(list&&) = default;
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
// CHECK: error: 'list' with the marked field 'list::head_' is copied as a whole{{.*}}[obase:struct-copy]
list* moved(list& from) { return new list(std::move(from)); }
