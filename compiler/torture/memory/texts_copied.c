// SPDX-License-Identifier: MIT
//
// right: strdup, strndup and asprintf.
#define _GNU_SOURCE
#include "torture.h"
struct item {
    char* name OBASE_GUIDED;
    char* label OBASE_GUIDED;
    char* head OBASE_GUIDED;
};
static struct item I[50];
void set(struct item* i, const char* name, int n) {
    char* label;
    free(i->name);
    i->name = strdup(name);
    free(i->label);
    i->label = asprintf(&label, "<%s/%d>", name, n) < 0 ? NULL : label;
    free(i->head);
    i->head = strndup(name, 3);
}
void show(const struct item* i) { printf("%s %s %s\n", i->name, i->label, i->head); }
int main(void) {
    char name[20];
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < 50; i++) {
            snprintf(name, sizeof name, "name %d", i + r);
            set(&I[i], name, i);
        }
        settle();
    }
    for (int i = 0; i < 50; i++) show(&I[i]);
}
