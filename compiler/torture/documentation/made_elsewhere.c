// SPDX-License-Identifier: MIT
//
// right: an allocation function of the program in another file, named in the marks file.
// with: made_elsewhere/memory.c
// marks: made_elsewhere/marks
#include "made_elsewhere/memory.h"
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    long key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static struct list L;
void push(struct list* l, long key) {
    struct node* n = checked_alloc(sizeof *n);
    n->key = key;
    n->next = l->head;
    l->head = n;
}
long sum(const struct list* l) {
    long s = 0;
    for (const struct node* n = l->head; n; n = n->next) s += n->key;
    return s;
}
void clear(struct list* l) {
    while (l->head) {
        struct node* n = l->head;
        l->head = n->next;
        checked_free(n);
    }
}
int main(void) {
    for (int r = 0; r < 3; r++) {
        for (long i = 0; i < 100; i++) push(&L, i);
        settle();
        printf("%ld\n", sum(&L));
        clear(&L);
    }
}
