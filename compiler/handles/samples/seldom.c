// SPDX-License-Identifier: MIT
// calls: obase_handles_tested_ optimized cold unlikely check
// Code that is hardly ever reached calls for its translations.
#include <stdio.h>
#include <stdlib.h>
struct node {
    struct node* next;
    long value;
};
__attribute__((cold, noinline)) static long cold(struct node* n) {
    long sum = 0;
    for (; n != NULL; n = n->next) sum += n->value;
    return sum;
}
__attribute__((noinline)) static long unlikely(struct node* n, struct node* other, long bound) {
    long sum = 0;
    for (; n != NULL; n = n->next) {
        if (__builtin_expect(n->value > bound, 0)) {
            other->value += n->value; // `other` has no translation but here
            other->next->value -= 1;
        }
        sum += n->value;
    }
    return sum;
}
__attribute__((noreturn, noinline)) static void end(struct node* n) {
    printf("%ld\n", n->value);
    exit(0);
}
__attribute__((noinline)) static void check(struct node* n, struct node* told) {
    while (n != NULL) {
        if (n->value == 0) end(told->next);
        n = n->next;
    }
}
int main(void) {
    struct node* list = NULL;
    for (long i = 1; i <= 6; ++i) {
        struct node* n = malloc(sizeof *n);
        n->next = list;
        n->value = i;
        list = n;
    }
    struct node* other = malloc(sizeof *other);
    other->value = 0;
    other->next = malloc(sizeof *other);
    *other->next = (struct node){NULL, 10};
    printf("%ld\n", cold(list)); //> 21
    printf("%ld ", unlikely(list, other, 5));
    printf("%ld %ld\n", other->value, other->next->value); //> 21 6 9
    check(list, other);
    list->next->value = 0;
    check(list, other); //> 9
}
