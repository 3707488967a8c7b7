// SPDX-License-Identifier: MIT
// flags: -O2
// Addresses in front of an object, which arrays that begin at 1 have, at junctions: they lead to an element of their own array.
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static long sum(const int* a, const int* b, int which, int count) {
    const int* from;
    long first;
    if (which == 1)
        from = a - 4, first = 4;
    else if (which == 2)
        from = b - 8, first = 8;
    else
        from = b - 1, first = 1;
    long made = 0;
    for (int i = 0; i < count; ++i) made = made * 3 + from[first + i];
    return made;
}
__attribute__((noinline)) static int last(const int* a, const int* b, int count) {
    const int* at = count & 1 ? a - 1 : b - 2;
    int seen = 0;
    for (int i = 0; i < count; ++i) {
        ++at;
        if (i > 0) seen += *at;
        if (i == count / 2) at = seen & 1 ? a : b;
    }
    return seen;
}
int main(void) {
    int* a = malloc(8 * sizeof *a);
    int* b = malloc(8 * sizeof *b);
    for (int i = 0; i < 8; ++i) a[i] = i + 1, b[i] = 10 * i;
    printf("%ld %ld %ld\n", sum(a, b, 1, 8), sum(a, b, 2, 8), sum(a, b, 3, 4)); //> 4916 16360 180
    printf("%d %d\n", last(a, b, 7), last(a, b, 6)); //> 18 60
    free(a);
    free(b);
}
