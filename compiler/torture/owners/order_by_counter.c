// SPDX-License-Identifier: MIT
//
// right: a cache with an order by age that is a counter in each entry.
#include "torture.h"
struct entry {
    struct entry* next OBASE_GUIDED;
    int key;
    unsigned used;
};
struct cache {
    struct entry* chain[8] OBASE_GUIDED;
    unsigned count, clock;
};
static struct cache C;
static void evict(struct cache* c) {
    struct entry** oldest = NULL;
    for (int i = 0; i < 8; i++)
        for (struct entry** at = &c->chain[i]; *at; at = &(*at)->next)
            if (!oldest || (*at)->used < (*oldest)->used) oldest = at;
    struct entry* e = *oldest;
    *oldest = e->next;
    free(e);
    c->count--;
}
int use(struct cache* c, int key) {
    for (struct entry* e = c->chain[key % 8]; e; e = e->next)
        if (e->key == key) {
            e->used = ++c->clock;
            return 1;
        }
    if (c->count == 30) evict(c);
    struct entry* e = malloc(sizeof *e);
    e->key = key;
    e->used = ++c->clock;
    e->next = c->chain[key % 8];
    c->chain[key % 8] = e;
    c->count++;
    return 0;
}
int main(void) {
    int hits = 0;
    for (int i = 0; i < 600; i++) {
        hits += use(&C, i * i % 47);
        if (i % 100 == 0) settle();
    }
    printf("%d\n", hits);
}
