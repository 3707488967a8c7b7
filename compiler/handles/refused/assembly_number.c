// SPDX-License-Identifier: MIT
// refused: gets an address as a number
// flags: -O2
int first(int* at) {
    int value;
    __asm__("movl (%1), %0" : "=r"(value) : "r"((unsigned long)at));
    return value;
}
int main(void) { return 0; }
