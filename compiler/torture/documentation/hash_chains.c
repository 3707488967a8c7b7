// SPDX-License-Identifier: MIT
//
// right: chains in a table that is a global variable.
#include "torture.h"
struct entry {
    struct entry* next OBASE_GUIDED;
    unsigned key, value;
};
struct table {
    struct entry* chain[32] OBASE_GUIDED;
    unsigned entries;
};
static struct table T;
void put(struct table* t, unsigned key, unsigned value) {
    struct entry* e;
    for (e = t->chain[key % 32]; e; e = e->next)
        if (e->key == key) break;
    if (!e) {
        e = malloc(sizeof *e);
        e->key = key;
        e->next = t->chain[key % 32];
        t->chain[key % 32] = e;
        t->entries++;
    }
    e->value = value;
}
int get(const struct table* t, unsigned key, unsigned* value) {
    for (const struct entry* e = t->chain[key % 32]; e != NULL; e = e->next)
        if (e->key == key) {
            *value = e->value;
            return 1;
        }
    return 0;
}
int main(void) {
    for (unsigned i = 0; i < 300; i++) put(&T, i, i * i);
    settle();
    for (unsigned i = 0; i < 300; i += 7) put(&T, i, 1);
    settle();
    unsigned long sum = 0;
    for (unsigned i = 0; i < 310; i++) {
        unsigned value = 0;
        if (get(&T, i, &value)) sum += value;
    }
    printf("%u %lu\n", T.entries, sum);
}
