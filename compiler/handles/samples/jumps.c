// SPDX-License-Identifier: MIT
// setjmp and longjmp, from below and out of a callback; the buffer in the heap; addresses live across.
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
struct state {
    jmp_buf back;
    int* count;
};
static struct state* state;
__attribute__((noinline)) static void deep(int n) {
    int* local = malloc(sizeof *local);
    *local = n;
    if (n == 0) longjmp(state->back, 3);
    deep(n - 1);
    printf("%d", *local);
}
static int leaves(const void* a, const void* b) {
    (void)a;
    (void)b;
    if (++*state->count == 20) longjmp(state->back, 4);
    return 0;
}
int main(void) {
    state = malloc(sizeof *state);
    state->count = calloc(1, sizeof(int));
    int* volatile kept = malloc(sizeof *kept);
    *kept = 10;
    const int came = setjmp(state->back);
    ++*kept;
    if (came == 0) deep(5);
    if (came == 3) {
        int* many = calloc(100, sizeof *many);
        qsort(many, 100, sizeof *many, leaves);
    }
    for (int i = 0; i < 3; ++i) *kept += i;
    printf("%d %d %d\n", came, *kept, *state->count); //> 4 16 20
}
