// SPDX-License-Identifier: MIT
// RUN: %accept++
// The move that the compiler writes for the outer class calls the one written by hand.
#include "marks.h"
#include <utility>
struct node { int key; };
class list {
  public:
    list() = default;
    list(list&& from) noexcept : head_(from.head_) { from.head_ = nullptr; }
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
struct session { int id = 0; list items; };
session* moved(session& from) { return new session(std::move(from)); }
