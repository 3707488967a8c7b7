// SPDX-License-Identifier: MIT
// Interior addresses, one past the end, the element before an interior address, members found from the other way round.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
struct part {
    int a, b;
};
struct whole {
    long first;
    struct part parts[4];
    char tail[];
};
__attribute__((noinline)) static int last_of(const int* end) { return end[-1]; }
__attribute__((noinline)) static struct whole* whole_of(struct part* p) {
    return (struct whole*)((char*)p - offsetof(struct whole, parts[2]));
}
int main(void) {
    int* numbers = malloc(16 * sizeof *numbers); // a whole block of its size class
    for (int* at = numbers; at != numbers + 16; ++at) *at = (int)(at - numbers);
    int sum = 0;
    for (const int* at = numbers + 16; at-- != numbers;) sum += *at;
    struct whole* w = malloc(sizeof *w + 8);
    w->first = 7;
    struct part* third = &w->parts[2];
    third->a = 3;
    third[1].b = 4;
    for (int i = 0; i < 8; ++i) w->tail[i] = (char)('a' + i);
    char* middle = w->tail + 4;
    printf("%d %d %ld %d %d %c%c\n", last_of(numbers + 16), sum, whole_of(third)->first,
           w->parts[2].a, w->parts[3].b, middle[-1], *middle); //> 15 120 7 3 4 de
    int* inside = numbers + 8;
    int differences = 0;
    for (int i = -8; i < 8; ++i) differences += inside[i] - i;
    printf("%d %td\n", differences, inside - numbers); //> 128 8
    free(w);
    free(numbers);
}
