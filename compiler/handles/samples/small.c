// SPDX-License-Identifier: MIT
// calls: obase_handles_tested_ always small
// Code that must be small calls for its translations.
#include <stdio.h>
#include <stdlib.h>
struct node {
    struct node* next;
    long value;
};
__attribute__((minsize, noinline)) static long small(struct node* n, long by) {
    long product = 1;
    for (; n != NULL; n = n->next) product *= n->value += by;
    return product;
}
int main(void) {
    struct node* list = NULL;
    for (long i = 1; i <= 6; ++i) {
        struct node* n = malloc(sizeof *n);
        n->next = list;
        n->value = i;
        list = n;
    }
    printf("%ld %ld\n", small(list, 1), small(list, -1)); //> 5040 720
}
