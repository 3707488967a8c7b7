// SPDX-License-Identifier: MIT
// refused: calls would go to the function that it replaces
// flags: -Wl,--wrap=work
int main(void) { return 0; }
