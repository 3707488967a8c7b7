// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct node { int key; };
struct list {
    // CHECK: error: a variable is marked{{.*}}[obase:mark-place]
    static inline node* head OBASE_GUIDED = nullptr;
};
bool empty() { return list::head == nullptr; }
