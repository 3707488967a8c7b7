/* SPDX-License-Identifier: MIT
 *
 * Lists in memory that is mapped and unmapped, at the same place again and again.
 *
 * STATUS: 0
 * EXPECT: 0 errors, 0 suspected
 */
#define _GNU_SOURCE
#include "list.h"

#include <sys/mman.h>

int main(void) {
    long s = 0;
    for (int round = 0; round < 20; ++round) {
        struct list* l =
            mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (long key = 0; key < 30; ++key) push(l, key);
        s += sum(l);
        munmap(l, 4096);
        fill();
    }
    printf("%ld %ld\n", s, sum(&all));
}
