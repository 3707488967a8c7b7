// SPDX-License-Identifier: MIT
// A signal handler that walks a list in the heap while the program changes other objects.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node {
    struct node* next;
    int value;
};
static struct node* volatile list;
static volatile int sum, handled;
static void handle(int signal) {
    (void)signal;
    int all = 0;
    for (struct node* n = list; n != NULL; n = n->next) all += n->value;
    sum = all;
    ++handled;
}
int main(void) {
    for (int i = 1; i <= 10; ++i) {
        struct node* n = malloc(sizeof *n);
        *n = (struct node){list, i};
        list = n;
    }
    struct sigaction* action = calloc(1, sizeof *action);
    action->sa_handler = handle;
    sigaction(SIGUSR1, action, NULL);
    int* other = calloc(1, sizeof *other);
    for (int i = 0; i < 50; ++i) {
        ++*other;
        raise(SIGUSR1);
        ++*other;
    }
    printf("%d %d %d\n", sum, handled, *other); //> 55 50 100
}
