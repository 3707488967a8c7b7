// SPDX-License-Identifier: MIT
//
// right: threads under a lock put into a list and take from it.
#include "torture.h"

#include <pthread.h>
struct node {
    struct node* next OBASE_GUIDED;
    long key;
};
struct list {
    pthread_mutex_t lock;
    struct node* head OBASE_GUIDED;
};
static struct list L = {PTHREAD_MUTEX_INITIALIZER, NULL};
void push(struct list* l, long key) {
    pthread_mutex_lock(&l->lock);
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = l->head;
    l->head = n;
    pthread_mutex_unlock(&l->lock);
}
long pop(struct list* l) {
    pthread_mutex_lock(&l->lock);
    struct node* n = l->head;
    long key = -1;
    if (n) {
        key = n->key;
        l->head = n->next;
        free(n);
    }
    pthread_mutex_unlock(&l->lock);
    return key;
}
static void* work(void* first) {
    for (long i = 0; i < 200; i++) push(&L, *(long*)first + i);
    for (int i = 0; i < 50; i++) push(&L, pop(&L));
    return NULL;
}
int main(void) {
    pthread_t t[3];
    long first[3] = {0, 1000, 2000}, sum = 0, key;
    for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, work, &first[i]);
    settle();
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    settle();
    while ((key = pop(&L)) >= 0) sum += key;
    printf("%ld\n", sum);
}
