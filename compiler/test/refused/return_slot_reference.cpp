// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct node { int key; };
class list {
  public:
    // CHECK: error: 'list::head' gives the slot 'list::head_' to a caller outside of the operation [obase:slot-escape]
    node*& head() { return head_; }
  private:
    node* head_ OBASE_GUIDED = nullptr;
};
list all;
