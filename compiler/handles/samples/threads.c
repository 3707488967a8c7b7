// SPDX-License-Identifier: MIT
// flags: -pthread
// Threads that share objects: a lock and a condition in the heap, arguments and results by address.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct item* head;
    int done;
};
struct item {
    struct item* next;
    long value;
};
static void* consume(void* argument) {
    struct queue* q = argument;
    long* sum = calloc(1, sizeof *sum);
    for (;;) {
        pthread_mutex_lock(&q->lock);
        while (q->head == NULL && !q->done) pthread_cond_wait(&q->filled, &q->lock);
        struct item* taken = q->head;
        if (taken != NULL) q->head = taken->next;
        pthread_mutex_unlock(&q->lock);
        if (taken == NULL) return sum;
        *sum += taken->value;
        free(taken);
    }
}
int main(void) {
    struct queue* q = calloc(1, sizeof *q);
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->filled, NULL);
    pthread_t* threads = malloc(3 * sizeof *threads);
    for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, consume, q);
    for (long i = 1; i <= 2000; ++i) {
        struct item* made = malloc(sizeof *made);
        made->value = i;
        pthread_mutex_lock(&q->lock);
        made->next = q->head;
        q->head = made;
        pthread_cond_signal(&q->filled);
        pthread_mutex_unlock(&q->lock);
    }
    pthread_mutex_lock(&q->lock);
    q->done = 1;
    pthread_cond_broadcast(&q->filled);
    pthread_mutex_unlock(&q->lock);
    long all = 0;
    for (int i = 0; i < 3; ++i) {
        void** sum = malloc(sizeof *sum);
        pthread_join(threads[i], sum);
        all += *(long*)*sum;
        free(*sum);
        free(sum);
    }
    printf("%ld\n", all); //> 2001000
}
