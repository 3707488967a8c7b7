// SPDX-License-Identifier: MIT
// The part of earlier_thread.c that is compiled by clang alone.
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static void* (*handed)(void*);
static void* argument;
static pthread_t earlier;
static void* wait_and_call(void* unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    while (handed == NULL) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return handed(argument);
}
__attribute__((constructor(101))) static void begin(void) {
    if (pthread_create(&earlier, NULL, wait_and_call, NULL) != 0) exit(1);
}
void hand_to_earlier_thread(void* (*f)(void*), void* to) {
    pthread_mutex_lock(&lock);
    argument = to;
    handed = f;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(earlier, NULL);
}
