// SPDX-License-Identifier: MIT
//
// right: malloc_usable_size of a managed object.
#include "torture.h"

#include <malloc.h>
struct buffer {
    char* bytes OBASE_GUIDED;
};
static struct buffer B[10];
int make(struct buffer* b, size_t size) {
    b->bytes = malloc(size);
    memset(b->bytes, 'x', size);
    return malloc_usable_size(b->bytes) >= size;
}
int end(const struct buffer* b, size_t size) { return b->bytes[size - 1]; }
int main(void) {
    for (int i = 0; i < 10; i++) printf("%d", make(&B[i], 10 + (size_t)i * 100));
    settle();
    for (int i = 0; i < 10; i++) printf("%c", end(&B[i], 10 + (size_t)i * 100));
    puts("");
}
