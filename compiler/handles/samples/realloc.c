// SPDX-License-Identifier: MIT
// realloc, calloc, aligned memory, usable sizes, and null.
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    char* text = NULL;
    size_t room = 0, used = 0;
    for (int i = 0; i < 5000; ++i) {
        if (used == room) text = realloc(text, room = room != 0 ? room * 2 : 1);
        text[used++] = (char)('a' + i % 26);
    }
    unsigned sum = 0;
    for (size_t i = 0; i < used; ++i) sum = sum * 31 + (unsigned char)text[i];
    text = realloc(text, 10);
    void* aligned = NULL;
    const int failed = posix_memalign(&aligned, 256, 100);
    memset(aligned, 1, 100);
    char* zeros = calloc(10, 10);
    int nonzero = 0;
    for (int i = 0; i < 100; ++i) nonzero += zeros[i] != 0;
    printf("%u %.10s %d %d %d\n", sum, text, failed, nonzero,
           malloc_usable_size(text) >= 10); //> 4120310340 abcdefghij 0 0 1
    char* big = malloc(1 << 20);
    memset(big, 7, 1 << 20);
    big = realloc(big, 3 << 20);
    printf("%d %d %d\n", big[0], big[(1 << 20) - 1], (int)((uintptr_t)aligned % 256)); //> 7 7 0
    free(NULL);
    free(realloc(NULL, 5));
    free(big);
    free(zeros);
    free(aligned);
    free(text);
}
