// SPDX-License-Identifier: MIT
// flags: -pthread -latomic -Wno-atomic-alignment
// Atomic operations on objects of the heap, from several threads; a stack without locks.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
struct node {
    struct node* next;
    long value;
};
struct shared {
    _Atomic long count;
    _Atomic(struct node*) top;
    _Atomic unsigned char small;
};
struct wide {
    long a, b, c;
};
static void* work(void* argument) {
    struct shared* s = argument;
    for (long i = 0; i < 500; ++i) {
        atomic_fetch_add(&s->count, i);
        struct node* made = malloc(sizeof *made);
        made->value = 1;
        made->next = atomic_load(&s->top);
        while (!atomic_compare_exchange_weak(&s->top, &made->next, made)) {
        }
        atomic_fetch_xor_explicit(&s->small, 3, memory_order_relaxed);
    }
    return NULL;
}
int main(void) {
    struct shared* s = calloc(1, sizeof *s);
    pthread_t threads[3];
    for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, work, s);
    for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
    long nodes = 0;
    for (struct node* n = s->top; n != NULL; n = n->next) nodes += n->value;
    _Atomic struct wide* w = malloc(sizeof *w);
    atomic_store(w, ((struct wide){1, 2, 3}));
    struct wide got = atomic_load(w);
    printf("%ld %ld %d %ld\n", (long)s->count, nodes, s->small, got.c); //> 374250 1500 0 3
}
