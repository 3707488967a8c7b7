// SPDX-License-Identifier: MIT
//
// right: parts of a buffer are moved and searched within one operation.
#include "torture.h"
struct text {
    char* bytes OBASE_GUIDED;
    size_t length;
};
static struct text T;
void set(struct text* t, const char* from) {
    t->length = strlen(from);
    t->bytes = realloc(t->bytes, t->length + 1);
    memcpy(t->bytes, from, t->length + 1);
}
int replace(struct text* t, const char* from, const char* to) {
    char* at = strstr(t->bytes, from);
    if (!at) return 0;
    size_t before = (size_t)(at - t->bytes), old = strlen(from), fresh = strlen(to);
    char* more = malloc(t->length + fresh - old + 1);
    memcpy(more, t->bytes, before);
    memcpy(more + before, to, fresh);
    strcpy(more + before + fresh, at + old);
    free(t->bytes);
    t->bytes = more;
    t->length = t->length + fresh - old;
    return 1;
}
void cut(struct text* t, size_t from, size_t count) {
    memmove(t->bytes + from, t->bytes + from + count, t->length - from - count + 1);
    t->length -= count;
}
size_t words(const struct text* t) {
    size_t n = 0;
    for (const char* p = t->bytes; p && *p; p = strchr(p, ' ')) {
        while (*p == ' ') p++;
        n += *p != 0;
    }
    return n;
}
void print(const struct text* t) { printf("%s (%zu)\n", t->bytes, t->length); }
int main(void) {
    set(&T, "a text of some words");
    settle();
    replace(&T, "some", "very many");
    settle();
    print(&T);
    cut(&T, 2, 5);
    settle();
    print(&T);
    printf("%zu\n", words(&T));
}
