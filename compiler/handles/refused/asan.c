// SPDX-License-Identifier: MIT
// flags: -fsanitize=address
// refused: heap of its own
int main(void) { return 0; }
