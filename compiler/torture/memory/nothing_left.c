// SPDX-License-Identifier: MIT
//
// right: allocations that fail leave everything as it was.
#include "torture.h"
struct buffer {
    char* bytes OBASE_GUIDED;
    size_t size;
};
static struct buffer B;
int grow(struct buffer* b, size_t count, size_t size) {
    char* more = reallocarray(b->bytes, count, size);
    if (!more) return 0;
    b->bytes = more;
    b->size = count * size;
    return 1;
}
void set(struct buffer* b, const char* text) { strcpy(b->bytes, text); }
int same(const struct buffer* b, const char* text) { return strcmp(b->bytes, text) == 0; }
int main(void) {
    volatile size_t huge = SIZE_MAX / 3;
    printf("%d", grow(&B, huge, 4));
    printf("%d", grow(&B, 10, 4));
    set(&B, "kept");
    settle();
    printf("%d", grow(&B, huge, 8));
    settle();
    printf("%d%d\n", grow(&B, 20, 4), same(&B, "kept"));
}
