// SPDX-License-Identifier: MIT
//
// encoded: records with marked fields are sorted as bytes, elsewhere.
// plain: plain/sort.c
#include "torture.h"
#include <stddef.h>
struct record {
    char* name OBASE_GUIDED;
    int key;
};
struct table {
    struct record all[40];
};
static struct table T;
void sort_records(void* all, size_t count, size_t size, size_t key_at);
void fill(struct table* t) {
    for (int i = 0; i < 40; i++) {
        t->all[i].name = malloc(24);
        t->all[i].key = i * 7 % 40;
        snprintf(t->all[i].name, 24, "name %d", t->all[i].key);
    }
}
void sort(struct table* t) {
    sort_records(t, 40, sizeof(struct record), offsetof(struct record, key));
}
int number(const struct table* t, int i) { return atoi(t->all[i].name + 5); }
int main(void) {
    fill(&T);
    settle();
    sort(&T);
    for (int r = 0; r < 4; r++) {
        settle();
        int right = 0;
        for (int i = 0; i < 40; i++) right += number(&T, i) == i;
        printf("%d\n", right);
    }
}
