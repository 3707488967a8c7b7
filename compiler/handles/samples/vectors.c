// SPDX-License-Identifier: MIT
// flags: -march=native
// Loops that become vectors, among them gathers from addresses in an array.
#include <stdio.h>
#include <stdlib.h>
struct item {
    int a, b, c, d;
};
__attribute__((noinline)) static long by_address(int* const* all, int n) {
    long sum = 0;
    for (int i = 0; i < n; ++i) sum += *all[i];
    return sum;
}
__attribute__((noinline)) static long by_index(const int* from, const int* index, int n) {
    long sum = 0;
    for (int i = 0; i < n; ++i)
        if (index[i] % 3 != 0) sum += from[index[i]];
    return sum;
}
__attribute__((noinline)) static void strided(struct item* items, int n) {
    for (int i = 0; i < n; ++i) items[i].c = items[i].a * 2 + items[i].b;
}
typedef int four __attribute__((vector_size(16)));
int main(void) {
    enum { n = 1000 };
    int** all = malloc(n * sizeof *all);
    int *from = malloc(n * sizeof *from), *index = malloc(n * sizeof *index);
    struct item* items = malloc(n * sizeof *items);
    for (int i = 0; i < n; ++i) {
        *(all[i] = malloc(sizeof(int))) = i;
        from[i] = i * 3;
        index[i] = i * 7 % n;
        items[i] = (struct item){i, 1, 0, 0};
    }
    strided(items, n);
    long sum = 0;
    for (int i = 0; i < n; ++i) sum += items[i].c;
    four* fours = aligned_alloc(16, 4 * sizeof *fours);
    for (int i = 0; i < 4; ++i) fours[i] = (four){i, i + 1, i + 2, i + 3};
    const four added = fours[0] + fours[3] * fours[1];
    printf("%ld %ld %ld %d\n", by_address(all, n), by_index(from, index, n), sum,
           added[3]); //> 499500 998001 1000000 27
}
