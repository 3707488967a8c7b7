// SPDX-License-Identifier: MIT
//
// right: aligned_alloc and posix_memalign.
#include "torture.h"
struct line {
    char bytes[64];
};
struct cache {
    struct line* line OBASE_GUIDED;
    struct line* other OBASE_GUIDED;
};
static struct cache C[20];
void set(struct cache* c, int i) {
    void* other = NULL;
    c->line = aligned_alloc(64, sizeof *c->line);
    if (posix_memalign(&other, 64, sizeof *c->other) != 0) abort();
    c->other = other;
    snprintf(c->line->bytes, 64, "line %d", i);
    snprintf(c->other->bytes, 64, "other %d", i);
}
int right(const struct cache* c, int i) {
    char sought[64];
    snprintf(sought, 64, "line %d", i);
    return strcmp(c->line->bytes, sought) == 0 && (uintptr_t)c->line % 64 == 0 &&
           c->other->bytes[0] == 'o';
}
int main(void) {
    int n = 0;
    for (int i = 0; i < 20; i++) set(&C[i], i);
    settle();
    for (int i = 0; i < 20; i++) n += right(&C[i], i);
    printf("%d\n", n);
}
