// SPDX-License-Identifier: MIT
//
// right: a buffer grows by hooks that another unit, compiled without the passes, has set.
// plain: plain/hooks.c
// marks: hooks.marks
#include "torture.h"
struct hooks {
    void* (*resize)(void*, size_t);
    void (*release)(void*);
};
extern const struct hooks* the_hooks(void);
struct buffer {
    char* text OBASE_GUIDED;
    size_t used, room;
};
static struct buffer B;
void append(struct buffer* b, char c) {
    const struct hooks* h = the_hooks();
    if (b->used + 1 >= b->room) {
        b->room = b->room ? 2 * b->room : 16;
        b->text = h->resize(b->text, b->room);
    }
    b->text[b->used++] = c;
    b->text[b->used] = '\0';
}
void clear(struct buffer* b) {
    the_hooks()->release(b->text);
    b->text = NULL;
    b->used = b->room = 0;
}
long length(const struct buffer* b) { return b->text ? (long)strlen(b->text) : 0; }
int main(void) {
    for (int r = 0; r < 3; r++) {
        for (int i = 0; i < 300; i++) append(&B, (char)('a' + i % 26));
        settle();
        for (int i = 0; i < 300; i++) append(&B, (char)('a' + i % 26));
        settle();
        printf("%ld\n", length(&B));
        clear(&B);
        printf("%ld\n", length(&B));
    }
}
