// SPDX-License-Identifier: MIT
//
// right, still: the table's functions are the program's own, so nothing is managed.
// marks: hooks.marks
#include "torture.h"
struct hooks {
    void* (*allocate)(size_t);
    void (*release)(void*);
};
static size_t used;
static void* counted(size_t bytes) {
    used += bytes;
    return malloc(bytes);
}
static struct hooks with = {counted, free};
struct item {
    char* text OBASE_GUIDED;
};
static struct item I[20];
void set(struct item* i, const char* text) {
    with.release(i->text);
    i->text = NULL;
    i->text = with.allocate(strlen(text) + 1);
    strcpy(i->text, text);
}
size_t length(const struct item* i) { return strlen(i->text); }
int main(void) {
    size_t n = 0;
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < 20; i++) set(&I[i], "hello");
        settle();
    }
    for (int i = 0; i < 20; i++) n += length(&I[i]);
    printf("%zu %zu\n", n, used);
}
