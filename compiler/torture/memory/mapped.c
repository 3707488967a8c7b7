// SPDX-License-Identifier: MIT
//
// right: structs with marked fields lie in memory that the program maps and unmaps.
#define _GNU_SOURCE
#include "torture.h"

#include <sys/mman.h>
struct node {
    struct node* next OBASE_GUIDED;
    long key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
void push(struct list* l, long key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = l->head;
    l->head = n;
}
long sum(const struct list* l) {
    long s = 0;
    for (const struct node* n = l->head; n; n = n->next) s += n->key;
    return s;
}
int main(void) {
    for (int r = 0; r < 8; r++) {
        struct list* l =
            mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int i = 0; i < 50; i++) push(l, i);
        settle();
        printf("%ld\n", sum(l));
        munmap(l, 4096);
        settle();
    }
}
