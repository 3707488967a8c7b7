// SPDX-License-Identifier: MIT
//
// right: a table of structs with marked fields, which calloc makes; it is rehashed into a larger one.
#include "torture.h"
struct entry {
    struct entry* next OBASE_GUIDED;
    unsigned key;
};
struct bucket {
    struct entry* first OBASE_GUIDED;
};
struct table {
    struct bucket* buckets;
    unsigned size, entries;
};
static struct table T;
void init(struct table* t) {
    t->size = 4;
    t->buckets = calloc(t->size, sizeof *t->buckets);
}
void grow(struct table* t) {
    unsigned size = t->size * 2;
    struct bucket* wider = calloc(size, sizeof *wider);
    for (unsigned i = 0; i < t->size; i++) {
        while (t->buckets[i].first) {
            struct entry* e = t->buckets[i].first;
            t->buckets[i].first = e->next;
            e->next = wider[e->key % size].first;
            wider[e->key % size].first = e;
        }
    }
    free(t->buckets);
    t->buckets = wider;
    t->size = size;
}
void add(struct table* t, unsigned key) {
    if (t->entries == 2 * t->size) grow(t);
    struct entry* e = malloc(sizeof *e);
    e->key = key;
    e->next = t->buckets[key % t->size].first;
    t->buckets[key % t->size].first = e;
    t->entries++;
}
int has(const struct table* t, unsigned key) {
    for (const struct entry* e = t->buckets[key % t->size].first; e; e = e->next)
        if (e->key == key) return 1;
    return 0;
}
int main(void) {
    init(&T);
    for (unsigned i = 0; i < 200; i++) {
        add(&T, i * 3);
        if (i % 40 == 0) settle();
    }
    settle();
    int found = 0;
    for (unsigned i = 0; i < 600; i++) found += has(&T, i);
    printf("%d %u\n", found, T.size);
}
