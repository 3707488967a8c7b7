// SPDX-License-Identifier: MIT
//
// refused: obase:immovable
#include "torture.h"

#include <pthread.h>
struct node {
    struct node* next OBASE_GUIDED;
    pthread_mutex_t lock;
};
int main(void) { puts(""); }
