/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
static size_t at;
static int by_key(const void* a, const void* b) {
    int x, y;
    memcpy(&x, (const char*)a + at, sizeof x);
    memcpy(&y, (const char*)b + at, sizeof y);
    return x - y;
}
void sort_records(void* all, size_t count, size_t size, size_t key_at) {
    at = key_at;
    qsort(all, count, size, by_key);
}
