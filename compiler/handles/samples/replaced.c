// SPDX-License-Identifier: MIT
// foreign: replaced_foreign_part.c
// unit: replaced_unit_part.c
// library: replaced_library_part.c
// Definitions that give way: a weak one to foreign code's, a library's to the program's, in each unit that calls them.
#include <stdio.h>
#include <stdlib.h>
__attribute__((weak, noinline)) int foreign_wins(int* at) { return *at; }
__attribute__((weak, noinline)) int stays(int* at) { return *at + 3; }
int from_unit(int* at);
int from_library(int* at);
int replaced_in_library(int* at) { return *at + 200; }
extern int absent(int*) __attribute__((weak));
typedef int function(int*);
int main(void) {
    int* number = malloc(sizeof *number);
    *number = 5;
    function* volatile by_address = foreign_wins;
    printf("%d %d %d\n", foreign_wins(number), by_address(number), from_unit(number)); //> 105 105 113
    printf("%d %d\n", stays(number), absent != NULL ? absent(number) : -1);            //> 8 -1
    printf("%d\n", from_library(number));                                              //> 410
}
