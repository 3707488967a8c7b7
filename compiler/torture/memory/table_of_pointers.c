// SPDX-License-Identifier: MIT
//
// right: a marked array of pointers, whose elements are slots; rehashed, and freed at last.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    long key;
};
struct table {
    struct node** bucket OBASE_GUIDED;
    unsigned mask, count;
};
static struct table T;
void init(struct table* t) {
    t->bucket = calloc(16, sizeof *t->bucket);
    t->mask = 15;
}
static void grow(struct table* t) {
    unsigned mask = 2 * t->mask + 1;
    struct node** wider = calloc(mask + 1, sizeof *wider);
    for (unsigned i = 0; i <= t->mask; i++) {
        struct node* n = t->bucket[i];
        t->bucket[i] = NULL;
        while (n) {
            struct node* next = n->next;
            n->next = wider[n->key & mask];
            wider[n->key & mask] = n;
            n = next;
        }
    }
    free(t->bucket);
    t->bucket = wider;
    t->mask = mask;
}
void put(struct table* t, long key) {
    if (t->count++ > t->mask) grow(t);
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = t->bucket[key & t->mask];
    t->bucket[key & t->mask] = n;
}
int has(const struct table* t, long key) {
    for (struct node* n = t->bucket[key & t->mask]; n; n = n->next)
        if (n->key == key) return 1;
    return 0;
}
void erase(struct table* t, long key) {
    for (struct node** at = &t->bucket[key & t->mask]; *at; at = &(*at)->next)
        if ((*at)->key == key) {
            struct node* n = *at;
            *at = n->next;
            free(n);
            t->count--;
            return;
        }
}
void clear(struct table* t) {
    for (unsigned i = 0; i <= t->mask; i++)
        while (t->bucket[i]) {
            struct node* n = t->bucket[i];
            t->bucket[i] = n->next;
            free(n);
        }
    free(t->bucket);
    t->bucket = NULL;
}
int main(void) {
    for (int r = 0; r < 2; r++) {
        init(&T);
        for (int i = 0; i < 300; i++) put(&T, i * 5);
        settle();
        for (int i = 0; i < 300; i += 2) erase(&T, i * 5);
        settle();
        int found = 0;
        for (int i = 0; i < 1500; i++) found += has(&T, i);
        printf("%d %u\n", found, T.mask);
        clear(&T);
        T.count = 0;
    }
}
