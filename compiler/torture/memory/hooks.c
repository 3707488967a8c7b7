// SPDX-License-Identifier: MIT
//
// right: memory is allocated through a table of functions, which a marks file names.
// marks: hooks.marks
#include "torture.h"
struct hooks {
    void* (*allocate)(size_t);
    void* (*change)(void*, size_t);
    void (*release)(void*);
};
static struct hooks with = {malloc, realloc, free};
struct item {
    struct item* next OBASE_GUIDED;
    char* text OBASE_GUIDED;
};
struct list {
    struct item* first OBASE_GUIDED;
};
static struct list L;
void add(struct list* l, const char* text) {
    struct item* i = with.allocate(sizeof *i);
    i->text = with.allocate(4);
    i->text = with.change(i->text, strlen(text) + 1);
    strcpy(i->text, text);
    i->next = l->first;
    l->first = i;
}
void pop(struct list* l) {
    struct item* i = l->first;
    l->first = i->next;
    with.release(i->text);
    with.release(i);
}
size_t length(const struct list* l) {
    size_t n = 0;
    for (const struct item* i = l->first; i; i = i->next) n += strlen(i->text);
    return n;
}
int main(void) {
    for (int r = 0; r < 5; r++) {
        for (int i = 0; i < 40; i++) add(&L, i % 2 ? "some text" : "other");
        settle();
        for (int i = 0; i < 13; i++) pop(&L);
        settle();
        printf("%zu\n", length(&L));
    }
}
