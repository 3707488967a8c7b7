/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
struct hooks {
    void* (*allocate)(size_t);
    void* (*resize)(void*, size_t);
    void (*release)(void*);
};
static void* allocate(size_t bytes) { return malloc(bytes); }
static void* resize(void* p, size_t bytes) { return realloc(p, bytes); }
static void release(void* p) { free(p); }
const struct hooks* the_hooks(void) {
    static const struct hooks all = {allocate, resize, release};
    return &all;
}
