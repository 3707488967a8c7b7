// SPDX-License-Identifier: MIT
// unit: units_part.c
// Two instrumented units: functions, variables and function pointers of each other; a name of the C library that is the
// program's own.
int printf(const char*, ...);
#include <stdlib.h>
struct node {
    struct node* next;
    int value;
};
struct node* push(struct node*, int);
int getline(char*, int); // no stdio.h: it declares another
extern struct node* shared;
extern int (*chosen)(const struct node*);
int sum_of(const struct node* n) {
    int all = 0;
    for (; n != NULL; n = n->next) all += n->value;
    return all;
}
int variadic(const char*, ...);
int main(void) {
    struct node* list = NULL;
    for (int i = 0; i < 10; ++i) list = push(list, i);
    shared = list->next;
    char* buffer = malloc(20);
    const int read = getline(buffer, 20);
    printf("%d %d %d %s %d\n", sum_of(list), chosen(shared), read, buffer,
           variadic("ab", list, 5)); //> 45 36 5 mine! 14
}
