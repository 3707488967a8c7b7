// SPDX-License-Identifier: MIT
//
// right: what is sorted are numbers of rows, not rows.
#include "torture.h"
struct row {
    char* text OBASE_GUIDED;
};
static struct row rows[20];
void set(struct row* r, int i) {
    r->text = malloc(16);
    snprintf(r->text, 16, "%03d", i * 7 % 20);
}
int compare(const struct row* a, const struct row* b) { return strcmp(a->text, b->text); }
static int by_text(const void* a, const void* b) {
    return compare(&rows[*(const int*)a], &rows[*(const int*)b]);
}
void show(const struct row* r) { printf("%s ", r->text); }
int main(void) {
    int order[20];
    for (int i = 0; i < 20; i++) {
        order[i] = i;
        set(&rows[i], i);
    }
    settle();
    qsort(order, 20, sizeof order[0], by_text);
    settle();
    for (int i = 0; i < 20; i++) show(&rows[order[i]]);
    puts("");
}
