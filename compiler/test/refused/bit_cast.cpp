// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
#include <array>
#include <bit>
struct node { int key; };
// CHECK: error: a bit cast reads or makes the bytes of the marked field 'list::head'{{.*}}[obase:cast]
struct list { node* head OBASE_GUIDED; };
auto bytes(const list& l) { return std::bit_cast<std::array<unsigned char, sizeof(list)>>(l); }
