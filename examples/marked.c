/* SPDX-License-Identifier: MIT
 *
 * A list in C whose pointers are marked. Compiled by obase-clang (docs/compiler.md) its nodes move;
 * any other compiler sees plain C:
 *
 *     obase-clang -O2 marked.c -o marked
 */
#include <obase/marked.h>
#include <obase/obase.h>

#include <stdio.h>
#include <stdlib.h>

struct node {
    struct node* next OBASE_GUIDED; /* a slot: the only pointer to that node */
    long value;
};
struct list {
    struct node* first OBASE_GUIDED;
};

/* The compiler makes an operation of each function that others call: it opens a scope. */
int push(struct list* l, long value) {
    struct node* n = malloc(sizeof *n);
    if (n == NULL) return -1;
    n->value = value;
    n->next = l->first;
    l->first = n;
    return 0;
}

long sum(const struct list* l) {
    long result = 0;
    for (const struct node* n = l->first; n != NULL; n = n->next) result += n->value;
    return result;
}

void clear(struct list* l) {
    while (l->first != NULL) {
        struct node* n = l->first;
        l->first = n->next;
        n->next = NULL;
        free(n);
    }
}

int main(void) {
    struct list* l = calloc(1, sizeof *l);
    if (l == NULL) return 1;
    for (long i = 1; i <= 1000; ++i)
        if (push(l, i) != 0) return 1;
    long right = 0;
    for (int window = 0; window < 4; ++window) {
        right += sum(l) == 500500;
        obase_collect_now();
    }
    printf("the sum was right %ld times of 4\n", right);
    clear(l);
    free(l);
    return right == 4 ? 0 : 1;
}
