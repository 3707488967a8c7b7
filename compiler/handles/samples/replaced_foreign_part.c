// SPDX-License-Identifier: MIT
int foreign_wins(int* at) { return *at + 100; }
