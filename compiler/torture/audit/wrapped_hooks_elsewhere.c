// SPDX-License-Identifier: MIT
//
// right: hooks of another unit that call malloc, realloc and free themselves.
// plain: plain/wrapped_hooks.c
#include "list.h"
struct hooks {
    void* (*allocate)(size_t);
    void* (*resize)(void*, size_t);
    void (*release)(void*);
};
const struct hooks* the_hooks(void);
static struct list L;
void longer_text(struct list* l) {
    for (struct node* n = l->head; n; n = n->next) {
        n->text = the_hooks()->resize(n->text, 200);
        memset(n->text + 20, 'x', 100);
    }
}
void clear(struct list* l) {
    while (l->head) {
        struct node* n = l->head;
        l->head = n->next;
        the_hooks()->release(n->text);
        the_hooks()->release(n);
    }
}
int main(void) {
    for (int r = 0; r < 3; r++) {
        for (int i = 0; i < 50; i++) push(&L, i);
        settle();
        longer_text(&L);
        settle();
        printf("%ld\n", sum(&L));
        clear(&L);
        settle();
    }
}
