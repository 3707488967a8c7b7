// SPDX-License-Identifier: MIT
//
// right: a growing array of texts, both marked by one mark.
#include "torture.h"
struct lines {
    char** line OBASE_GUIDED;
    int count, capacity;
};
static struct lines L;
void add(struct lines* l, const char* text) {
    if (l->count == l->capacity) {
        l->capacity = l->capacity ? 2 * l->capacity : 4;
        l->line = realloc(l->line, (size_t)l->capacity * sizeof *l->line);
    }
    l->line[l->count++] = strdup(text);
}
void erase(struct lines* l, int at) {
    free(l->line[at]);
    for (int i = at; i + 1 < l->count; i++) l->line[i] = l->line[i + 1];
    l->line[--l->count] = NULL;
}
void print(const struct lines* l) {
    for (int i = 0; i < l->count; i++) puts(l->line[i]);
}
int main(void) {
    char text[32];
    for (int i = 0; i < 40; i++) {
        snprintf(text, sizeof text, "line %d", i);
        add(&L, text);
        if (i % 8 == 0) settle();
    }
    for (int i = 0; i < 10; i++) erase(&L, i * 2);
    settle();
    print(&L);
}
