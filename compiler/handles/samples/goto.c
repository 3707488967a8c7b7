// SPDX-License-Identifier: MIT
// Computed goto, switches, loops that are entered in the middle, code that ends nowhere.
#include <stdio.h>
#include <stdlib.h>
struct machine {
    const unsigned char* code;
    long* stack;
    long* top;
};
__attribute__((noinline)) static long run(struct machine* m) {
    static const void* const jumps[] = {&&push, &&add, &&mul, &&dup, &&dec_jump, &&end};
    const unsigned char* at = m->code;
#define NEXT goto* jumps[*at++]
    NEXT;
push:
    *m->top++ = *at++;
    NEXT;
add:
    m->top--;
    m->top[-1] += m->top[0];
    NEXT;
mul:
    m->top--;
    m->top[-1] *= m->top[0];
    NEXT;
dup:
    m->top[0] = m->top[-1];
    m->top++;
    NEXT;
dec_jump:
    if (--m->stack[0] != 0)
        at -= *at;
    else
        ++at;
    NEXT;
end:
    return m->top[-1];
}
__attribute__((noinline)) static int middle(int* counts, int from) {
    int steps = 0;
    switch (from % 3) { // a loop with three entries
        do {
        case 0:
            counts[0]++;
            ++steps;
        case 1:
            counts[1]++;
            ++steps;
        case 2:
            counts[2]++;
            ++steps;
        } while (steps < 10);
    }
    return steps;
}
int main(void) {
    const unsigned char program[] = {0, 5, 0, 1, 0, 3, 1, 4, 4, 3, 1, 5};
    unsigned char* code = malloc(sizeof program);
    for (unsigned i = 0; i < sizeof program; ++i) code[i] = program[i];
    struct machine* m = malloc(sizeof *m);
    m->code = code;
    m->top = m->stack = calloc(16, sizeof(long));
    printf("%ld ", run(m));
    int* counts = calloc(3, sizeof *counts);
    printf("%d ", middle(counts, 2));
    printf("%d %d %d\n", counts[0], counts[1], counts[2]); //> 32 10 3 3 4
}
