// SPDX-License-Identifier: MIT
//
// refused: An object has one owner
// The cache keeps the entry that it found last, in a field without a mark.
#include "torture.h"
struct entry {
    struct entry* next OBASE_GUIDED;
    int key, value;
};
struct cache {
    struct entry* first OBASE_GUIDED;
    struct entry* last_found;
};
static struct cache C;
void put(struct cache* c, int key, int value) {
    struct entry* e = malloc(sizeof *e);
    e->key = key;
    e->value = value;
    e->next = c->first;
    c->first = e;
}
int get(struct cache* c, int key) {
    if (c->last_found && c->last_found->key == key) return c->last_found->value;
    for (struct entry* e = c->first; e; e = e->next)
        if (e->key == key) {
            c->last_found = e;
            return e->value;
        }
    return -1;
}
int main(void) {
    for (int i = 0; i < 50; i++) put(&C, i, i * 2);
    settle();
    int s = 0;
    for (int i = 0; i < 50; i++) s += get(&C, i / 10);
    printf("%d\n", s);
}
