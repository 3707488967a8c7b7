/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
struct hooks {
    void* (*resize)(void*, size_t);
    void (*release)(void*);
};
static struct hooks all;
const struct hooks* the_hooks(void) {
    all.resize = realloc;
    all.release = free;
    return &all;
}
