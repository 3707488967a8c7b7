/* SPDX-License-Identifier: MIT
 *
 * A list with one owner per node, for the programs of this folder. */
#include "torture.h"

struct node {
    struct node* next OBASE_GUIDED;
    char* text OBASE_GUIDED;
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};

#ifndef NO_LIST
static inline void push(struct list* l, int key) {
    struct node* n = calloc(1, sizeof *n);
    n->key = key;
    n->text = malloc(24);
    snprintf(n->text, 24, "text %d", key);
    n->next = l->head;
    l->head = n;
}
static inline long sum(const struct list* l) {
    long s = 0;
    for (const struct node* n = l->head; n; n = n->next) s += n->key + n->text[5];
    return s;
}
#endif
