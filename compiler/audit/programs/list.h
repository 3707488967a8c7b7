/* SPDX-License-Identifier: MIT
 *
 * A list with one owner per element, for the programs of this folder. */
#include <obase/marked.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct node* next OBASE_GUIDED;
    long key;
    char text[40];
};
struct list {
    struct node* head OBASE_GUIDED;
};

#ifndef NO_LIST
static struct list all;

void push(struct list* l, long key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    snprintf(n->text, sizeof n->text, "key %ld", key);
    n->next = l->head;
    l->head = n;
}
long sum(struct list* l) {
    long s = 0;
    for (struct node* n = l->head; n != NULL; n = n->next) s += n->key;
    return s;
}
static void fill(void) {
    for (long key = 1; key <= 200; ++key) push(&all, key);
}
#endif
