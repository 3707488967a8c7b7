// SPDX-License-Identifier: MIT
// flags: -fsanitize=memory
// refused: heap of its own
int main(void) { return 0; }
