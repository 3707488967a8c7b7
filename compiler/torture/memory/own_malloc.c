// SPDX-License-Identifier: MIT
//
// right: a static function of the file allocates for fields and for others.
#include "torture.h"
static void* checked(size_t bytes) {
    void* p = malloc(bytes);
    if (!p) abort();
    return p;
}
static char* copied(const char* text) { return strcpy(checked(strlen(text) + 1), text); }
struct entry {
    struct entry* next OBASE_GUIDED;
    char* key OBASE_GUIDED;
    char* note;
};
struct table {
    struct entry* chain[8] OBASE_GUIDED;
};
static struct table T;
static unsigned hash(const char* text) {
    unsigned h = 0;
    while (*text) h = h * 31 + (unsigned char)*text++;
    return h % 8;
}
void put(struct table* t, const char* key, const char* note) {
    struct entry* e = checked(sizeof *e);
    e->key = copied(key);
    e->note = copied(note);
    e->next = t->chain[hash(key)];
    t->chain[hash(key)] = e;
}
int get(const struct table* t, const char* key, char* out) {
    for (const struct entry* e = t->chain[hash(key)]; e; e = e->next)
        if (strcmp(e->key, key) == 0) {
            strcpy(out, e->note);
            return 1;
        }
    return 0;
}
int main(void) {
    char key[20], note[40];
    for (int i = 0; i < 60; i++) {
        snprintf(key, sizeof key, "key %d", i);
        snprintf(note, sizeof note, "note of %d", i);
        put(&T, key, note);
    }
    settle();
    for (int i = 0; i < 62; i += 7) {
        snprintf(key, sizeof key, "key %d", i);
        printf("%s\n", get(&T, key, note) ? note : "none");
    }
}
