// SPDX-License-Identifier: MIT
//
// audit: two-fields or freed-in-field: two fields hold a text, and one of them frees it.
#include "torture.h"
struct item {
    char* name OBASE_GUIDED;
    char* shown OBASE_GUIDED;
};
static struct item I[20];
void name(struct item* i, int n) {
    i->name = malloc(24);
    snprintf(i->name, 24, "name %d", n);
}
void show(struct item* i) { i->shown = i->name; }
void rename_to(struct item* i, int n) {
    free(i->name);
    name(i, n);
}
int first(const struct item* i) { return i->name[0]; }
int main(void) {
    for (int i = 0; i < 20; i++) {
        name(&I[i], i);
        show(&I[i]);
        rename_to(&I[i], i + 100);
    }
    settle();
    int s = 0;
    for (int i = 0; i < 20; i++) s += first(&I[i]);
    printf("%d\n", s);
}
