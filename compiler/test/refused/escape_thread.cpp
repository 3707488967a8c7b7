// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse++
#include "marks.h"
#include <thread>
struct node { int key; };
struct list { node* head OBASE_GUIDED; };
static void work(node* n) { ++n->key; }
void start(list& l) {
    // CHECK: error:
    std::thread(work, l.head).detach();
}
