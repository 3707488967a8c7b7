// SPDX-License-Identifier: MIT
// flags: -m32 -c -ffreestanding
// refused: one of 64 bits
int main(void) { return 0; }
