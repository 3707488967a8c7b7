// SPDX-License-Identifier: MIT
// The other unit of units.c.
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
struct node {
    struct node* next;
    int value;
};
int sum_of(const struct node*);
struct node* shared;
int (*chosen)(const struct node*) = sum_of;
struct node* push(struct node* before, int value) {
    struct node* made = malloc(sizeof *made);
    *made = (struct node){before, value};
    return made;
}
int getline(char* to, int room) {
    (void)room;
    strcpy(to, "mine!");
    return (int)strlen(to);
}
int variadic(const char* format, ...) {
    va_list list;
    va_start(list, format);
    const struct node* n = va_arg(list, struct node*);
    const int number = va_arg(list, int);
    va_end(list);
    return n->value + number;
}
