// SPDX-License-Identifier: MIT
// refused: use setjmp and longjmp
static void* buffer[5];
int main(void) { return __builtin_setjmp(buffer); }
