// SPDX-License-Identifier: MIT
// flags: -O2
// Addresses in front of an object that are passed to local functions: they lead to an element of their own array, also where
// they are joined with others, or passed on.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct entry {
    int size, at;
    char text[40];
};
// As sqlite's fts5 does: what is written has the entry's layout, without its beginning.
__attribute__((noinline)) static int put(const struct entry* entry, struct entry* instead) {
    char* to = instead != NULL ? (char*)instead : (char*)entry;
    to[entry->at] = 'x';
    to[entry->at + 1] = 'y';
    return entry->size;
}
static void at_the_end(int one) {
    struct entry* entry = calloc(1, sizeof *entry);
    entry->at = (int)sizeof *entry - 8 + one;
    entry->size = entry->at;
    const int header = (int)sizeof *entry - 16 + one;
    char* copy = calloc(1, 64);
    put(entry, NULL);
    printf("%d\n", put(entry, (struct entry*)&copy[16 - header]) - header); //> 8
    printf("%s\n", copy + 16 - header + entry->at);                         //> xy
    free(copy);
    free(entry);
}
// Arrays that begin at 1.
__attribute__((noinline)) static long of_row(const long* row, int count) {
    long made = 0;
    for (int i = 1; i <= count; ++i) made = made * 3 + row[i];
    return made;
}
__attribute__((noinline)) static long of_some(const long* row, int from, int count) {
    return count == 0 ? 0 : row[from] + of_some(row, from + 1, count - 1);
}
__attribute__((noinline)) static long of_both(const long* row, const long* other, int count,
                                              int one) {
    long made = of_row(row, count) + of_some(row, 1, count);
    const long* joined = one > 1 ? row : other;
    made += joined[count];
    return made + of_row(one > 1 ? other : row, count);
}
static void from_one(int one) {
    long* row = malloc(6 * sizeof *row);
    long* other = malloc(6 * sizeof *other);
    for (int i = 0; i < 6; ++i) row[i] = i + 1, other[i] = 10 * i;
    printf("%ld\n", of_both(row - 1, other - 1, 6, one));     //> 1157
    printf("%ld\n", of_both(row - 1, other - 1, 6, one + 1)); //> 2360
    // No address in front, and one that is a number.
    const volatile unsigned long number = (unsigned long)row / sizeof *row;
    const long* numbered = (const long*)NULL + number;
    printf("%ld %ld\n", of_row(row, 5), of_row(numbered, 5)); //> 300 300
    free(row);
    free(other);
}
// More arguments than registers; an offset that varies, and a phi of such addresses.
__attribute__((noinline)) static int sum(const int* a, const int* b, const int* c, int from,
                                         int count, int step, int one) {
    int made = one;
    for (int i = from; i < from + count; i += step) made += a[i] + b[i] * 10 + c[i] * 100;
    return made;
}
static void many(int one) {
    const int count = 4 * one;
    int* all[3];
    for (int i = 0; i < 3; ++i) {
        all[i] = malloc(8 * sizeof **all);
        for (int j = 0; j < 8; ++j) all[i][j] = i + j;
    }
    const int shift = 1000 * one;
    const int* which = count % 3 == 0 ? all[1] - 1000 : all[2] - 999;
    printf("%d\n",
           sum(all[0] - shift, which, all[2] + (one - shift) - 1, shift, count, one, one)); //> 1587
    for (int i = 0; i < 3; ++i) free(all[i]);
}
// The difference of two objects leads from one to the other, and not in front of one.
__attribute__((noinline)) static int text_at(const char* text, int at) { return text[at]; }
static void relocated(void) {
    char* old = malloc(64);
    strcpy(old, "relocated");
    char* at = old + 2;
    char* grown = malloc(200);
    memcpy(grown, old, 64);
    const long moved = grown - old;
    free(old);
    printf("%c\n", text_at(at + moved, 1)); //> o
    free(grown);
}
// Also where more is added to it.
__attribute__((noinline)) static int text_behind(const char* at, const char* old, const char* grown,
                                                 long more) {
    return text_at(at + (((long)grown + more) - (long)old), 0);
}
static void relocated_further(int argc) {
    char* old = malloc(64);
    strcpy(old, "relocated");
    char* at = old + 2;
    char* grown = malloc(200);
    memcpy(grown, old, 64);
    printf("%c\n", text_behind(at, old, grown, argc + 1)); //> c
    free(old);
    free(grown);
}
int main(int argc, char** argv) {
    (void)argv;
    at_the_end(argc);
    from_one(argc);
    many(argc);
    relocated();
    relocated_further(argc);
}
