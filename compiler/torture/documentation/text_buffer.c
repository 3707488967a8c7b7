// SPDX-License-Identifier: MIT
//
// right: a text that grows by realloc and is read within operations.
#include "torture.h"
struct text {
    char* bytes OBASE_GUIDED;
    size_t length, capacity;
};
static struct text T;
void append(struct text* t, const char* more) {
    size_t length = strlen(more);
    if (t->length + length + 1 > t->capacity) {
        t->capacity = 2 * (t->length + length + 1);
        t->bytes = realloc(t->bytes, t->capacity);
    }
    memcpy(t->bytes + t->length, more, length + 1);
    t->length += length;
}
void put_into(const struct text* t, char* out, size_t size) { snprintf(out, size, "%s", t->bytes); }
int main(void) {
    char out[512];
    for (int i = 0; i < 40; i++) {
        append(&T, i % 2 ? "odd " : "even ");
        settle();
    }
    put_into(&T, out, sizeof out);
    puts(out);
}
