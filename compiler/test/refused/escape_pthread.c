// SPDX-License-Identifier: MIT
// REQUIRES: passes
// XFAIL: *
// RUN: %refuse
#include "marks.h"
#include <pthread.h>
struct node { int key; };
struct list { struct node* head OBASE_GUIDED; };
void* work(void* n);
int start(struct list* l) {
    pthread_t thread;
    // CHECK: error:
    return pthread_create(&thread, 0, work, l->head);
}
