// SPDX-License-Identifier: MIT
// The C library calls back: qsort, bsearch, atexit; functions by their address; structs of them in the heap.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int compare(const void* a, const void* b) {
    return strcmp(*(char* const*)a, *(char* const*)b);
}
static int descending(const void* a, const void* b) { return *(const int*)b - *(const int*)a; }
struct operations {
    int (*apply)(void*, int);
    void* state;
};
static int add(void* state, int x) { return *(int*)state += x; }
static void last(void) { puts("last"); }
int main(void) {
    char** words = malloc(5 * sizeof *words);
    for (int i = 0; i < 5; ++i)
        words[i] = strdup((const char*[]){"pear", "fig", "apple", "plum", "kiwi"}[i]);
    qsort(words, 5, sizeof *words, compare);
    for (int i = 0; i < 5; ++i) printf("%s ", words[i]);
    char* key = strdup("kiwi");
    char** found = bsearch(&key, words, 5, sizeof *words, compare);
    printf("%td\n", found - words); //> apple fig kiwi pear plum 2
    int* numbers = malloc(100 * sizeof *numbers);
    for (int i = 0; i < 100; ++i) numbers[i] = i * 37 % 101;
    qsort(numbers, 100, sizeof *numbers, descending);
    int wrong = 0;
    for (int i = 1; i < 100; ++i) wrong += numbers[i - 1] < numbers[i];
    struct operations* o = malloc(sizeof *o);
    *o = (struct operations){add, calloc(1, sizeof(int))};
    for (int i = 0; i < 10; ++i) o->apply(o->state, i);
    printf("%d %d %d\n", wrong, *(int*)o->state, o->apply == add); //> 0 45 1
    atexit(last);                                                  //> last
}
