// SPDX-License-Identifier: MIT
// flags: --obase-marks=marks.txt
// refused: is about marked fields
int main(void) { return 0; }
