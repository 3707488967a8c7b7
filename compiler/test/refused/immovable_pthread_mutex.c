// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
#include <pthread.h>
struct node {
    pthread_mutex_t lock;
    // CHECK: error: 'node::next' is marked{{.*}}a 'pthread_mutex_t' is known to waiting threads by its address [obase:immovable]
    struct node* next OBASE_GUIDED;
};
int last(const struct node* n) { return n->next == 0; }
