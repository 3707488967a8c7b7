// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
#include "marks.h"
#include <pthread.h>
struct node { int key; };
struct list { struct node* head OBASE_GUIDED; };
void* work(void* n);
int start(struct list* l) {
    pthread_t thread;
    // CHECK: error: {{.*}}handed to pthread_create, which keeps it
    return pthread_create(&thread, 0, work, l->head);
}
