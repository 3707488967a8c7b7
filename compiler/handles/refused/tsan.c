// SPDX-License-Identifier: MIT
// flags: -fsanitize=thread
// refused: for a race
int main(void) { return 0; }
