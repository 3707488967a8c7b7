// SPDX-License-Identifier: MIT
// flags: -pthread
// foreign: earlier_thread_part.c
// A thread of foreign code that is older than all compiled code calls into it: it has no register from a thread that has
// entered. So has one that this thread makes.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
void hand_to_earlier_thread(void* (*f)(void*), void* argument);
struct node {
    struct node* next;
    long value;
};
static void* sum(void* first) {
    long made = 0;
    for (struct node* n = first; n != NULL; n = n->next) made += n->value;
    long* result = malloc(sizeof *result);
    *result = made;
    return result;
}
static void* sum_twice(void* first) {
    pthread_t other;
    void* result = NULL;
    if (pthread_create(&other, NULL, sum, first) != 0 || pthread_join(other, &result) != 0) exit(1);
    long* mine = sum(first);
    printf("%ld %ld\n", *(long*)result, *mine); //> 4950 4950
    fflush(stdout);
    free(result);
    free(mine);
    return NULL;
}
int main(void) {
    struct node* first = NULL;
    for (long i = 0; i < 100; ++i) {
        struct node* n = malloc(sizeof *n);
        n->value = i;
        n->next = first;
        first = n;
    }
    hand_to_earlier_thread(sum_twice, first);
    puts("done"); //> done
    while (first != NULL) {
        struct node* next = first->next;
        free(first);
        first = next;
    }
}
