// SPDX-License-Identifier: MIT
// Inline assembly: memory operands, addresses in registers, and assembly that does nothing.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    long* number = malloc(sizeof *number);
    *number = 40;
    __asm__("addq $2, %0" : "+m"(*number));
    long* same = number;
    __asm__("" : "+r"(same));
    long loaded = 0;
    __asm__ volatile("movq (%1), %0" : "=r"(loaded) : "r"(number) : "memory");
    long other = 7;
    __asm__ volatile("lock xaddq %0, %1" : "+r"(other), "+m"(*same));
    printf("%ld %ld %ld %d\n", loaded, *number, other, same == number); //> 42 49 42 1
    __asm__ volatile("" ::: "memory");
}
