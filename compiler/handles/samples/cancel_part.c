// SPDX-License-Identifier: MIT
#include <unistd.h>
void foreign_call(void (*function)(int*), int* number) { function(number); }
void foreign_wait(int file) {
    char byte;
    if (read(file, &byte, 1) < 0) return;
}
