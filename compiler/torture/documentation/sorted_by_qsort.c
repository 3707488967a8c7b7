// SPDX-License-Identifier: MIT
//
// refused: obase:bytes
#include "torture.h"
struct row {
    char* text OBASE_GUIDED;
    int key;
};
static struct row rows[10];
static int by_key(const void* a, const void* b) {
    return ((const struct row*)a)->key - ((const struct row*)b)->key;
}
void sort(struct row* r, size_t n) { qsort(r, n, sizeof *r, by_key); }
int main(void) {
    for (int i = 0; i < 10; i++) rows[i].key = i * 7 % 10;
    sort(rows, 10);
    printf("%d\n", rows[0].key);
}
