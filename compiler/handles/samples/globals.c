// SPDX-License-Identifier: MIT
// Variables that hold addresses: of the unit, of functions, of threads; constants; memory of other kinds.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static struct {
    char* name;
    int* count;
} table[3];
static _Thread_local int* mine;
static int constant[] = {1, 2, 3};
__attribute__((noinline)) static int read_any(const int* at) { return at[1]; }
int main(void) {
    for (int i = 0; i < 3; ++i) {
        table[i].name = strdup("nameX");
        table[i].name[4] = (char)('0' + i);
        table[i].count = malloc(2 * sizeof(int));
        table[i].count[1] = i;
    }
    mine = table[2].count;
    static int* kept;
    kept = mine;
    int local[2] = {5, 6};
    int* mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mapped[1] = 8;
    const char* home = getenv("PATH");
    printf("%s %d %d %d %d %d %d\n", table[1].name, read_any(mine), read_any(kept), read_any(local),
           read_any(constant), read_any(mapped), home != NULL); //> name1 2 2 6 2 8 1
}
