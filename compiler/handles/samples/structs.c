// SPDX-License-Identifier: MIT
// Structs by value: from and into the heap, as arguments, as results; copies; bit fields; arrays of variable length.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct big {
    long values[12];
};
struct bits {
    unsigned a : 3, b : 13;
    int c : 7;
};
__attribute__((noinline)) static long sum(struct big b, int times) {
    long all = 0;
    for (int i = 0; i < 12; ++i) all += b.values[i] * times;
    b.values[0] = 99;
    return all;
}
__attribute__((noinline)) static struct big doubled(struct big b) {
    for (int i = 0; i < 12; ++i) b.values[i] *= 2;
    return b;
}
__attribute__((noinline)) static long with_room(int n) {
    long on_stack[n];
    long* all = malloc((size_t)n * sizeof *all);
    for (int i = 0; i < n; ++i) on_stack[i] = i;
    memcpy(all, on_stack, sizeof on_stack);
    memmove(all + 1, all, (size_t)(n - 1) * sizeof *all);
    long result = 0;
    for (int i = 0; i < n; ++i) result += all[i];
    free(all);
    return result;
}
int main(void) {
    struct big* one = malloc(sizeof *one);
    for (int i = 0; i < 12; ++i) one->values[i] = i;
    struct big* two = malloc(sizeof *two);
    *two = doubled(*one);
    printf("%ld %ld %ld\n", sum(*two, 1), sum(doubled(*two), 2), one->values[0]); //> 132 528 0
    struct bits* b = calloc(1, sizeof *b);
    b->a = 5;
    b->b = 4097;
    b->c = -3;
    printf("%u %u %d %ld\n", b->a, b->b, b->c, with_room(10)); //> 5 4097 -3 36
}
