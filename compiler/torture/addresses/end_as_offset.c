// SPDX-License-Identifier: MIT
//
// right: how far a reader has come is kept as an offset.
#include "torture.h"
struct reader {
    char* line OBASE_GUIDED;
    size_t at;
};
static struct reader R[10];
void load(struct reader* r, int n) {
    r->line = malloc(64);
    snprintf(r->line, 64, "%d %d %d", n, n * n, n + 7);
    r->at = 0;
}
long next(struct reader* r) {
    char* end;
    long v = strtol(r->line + r->at, &end, 10);
    r->at = (size_t)(end - r->line);
    return v;
}
int main(void) {
    for (int i = 0; i < 10; i++) load(&R[i], i);
    long sum = 0;
    for (int k = 0; k < 3; k++) {
        settle();
        for (int i = 0; i < 10; i++) sum = sum * 3 + next(&R[i]);
    }
    printf("%ld\n", sum);
}
