// SPDX-License-Identifier: MIT
//
// right: an array of flexible length at the end of the struct.
#include "torture.h"
struct value {
    size_t length;
    char bytes[];
};
struct entry {
    struct value* value OBASE_GUIDED;
};
static struct entry E[20];
void set(struct entry* e, const char* text) {
    size_t length = strlen(text);
    struct value* v = realloc(e->value, sizeof *v + length + 1);
    v->length = length;
    memcpy(v->bytes, text, length + 1);
    e->value = v;
}
int compare(const struct entry* a, const struct entry* b) {
    return memcmp(a->value->bytes, b->value->bytes, a->value->length);
}
void show(const struct entry* e) { printf("%zu %s\n", e->value->length, e->value->bytes); }
int main(void) {
    for (int r = 0; r < 3; r++) {
        for (int i = 0; i < 20; i++)
            set(&E[i], r == i % 3 ? "short" : "a rather longer text than that");
        settle();
    }
    for (int i = 0; i < 20; i++) show(&E[i]);
    printf("%d\n", compare(&E[0], &E[3]) == 0);
}
