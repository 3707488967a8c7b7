// SPDX-License-Identifier: MIT
//
// audit: two-fields: entries that are in a hash chain and in a list by age, both marked.
#include "torture.h"
struct entry {
    struct entry* in_chain OBASE_GUIDED;
    struct entry* by_age OBASE_GUIDED;
    int key;
};
struct cache {
    struct entry* chain[16] OBASE_GUIDED;
    struct entry* oldest OBASE_GUIDED;
};
static struct cache C;
static void insert(struct entry** at, struct entry* e) {
    e->in_chain = *at;
    *at = e;
}
void put(struct cache* c, int key) {
    struct entry* e = calloc(1, sizeof *e);
    e->key = key;
    insert(&c->chain[key % 16], e);
    e->by_age = c->oldest;
    c->oldest = e;
}
long sum(const struct cache* c) {
    long s = 0;
    for (const struct entry* e = c->oldest; e; e = e->by_age) s += e->key;
    for (const struct entry* e = c->chain[3]; e; e = e->in_chain) s += e->key;
    return s;
}
int main(void) {
    for (int i = 0; i < 100; i++) put(&C, i);
    settle();
    printf("%ld\n", sum(&C));
    settle();
    printf("%ld\n", sum(&C));
}
