// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse++
// An iterator carries an address from one operation to the next.
#include "marks.h"
struct node { int key; node* next OBASE_GUIDED; };
class list {
  public:
    struct iterator { node* at; };
    // CHECK: error:
    iterator begin() const { return {head_}; }
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
bool use(const list& l) { return l.begin().at == nullptr; }
