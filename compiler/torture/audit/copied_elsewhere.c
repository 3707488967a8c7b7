// SPDX-License-Identifier: MIT
//
// audit: two-fields or stale-use or unconverted-access or freed-in-field: a struct with marked fields is copied as bytes, by a unit that knows nothing of it.
// plain: plain/copy.c
#include "list.h"
void copy_bytes(void* to, const void* from, size_t bytes);
static struct list L;
static struct node copy;
void save(const struct list* l, struct node* to) { copy_bytes(to, l->head, sizeof *to); }
int key_behind(const struct node* n) { return n->next->key; }
int main(void) {
    for (int i = 0; i < 30; i++) push(&L, i);
    settle();
    save(&L, &copy);
    settle();
    printf("%ld\n", sum(&L));
    settle();
    printf("%d\n", key_behind(&copy));
}
