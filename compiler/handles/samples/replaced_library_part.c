// SPDX-License-Identifier: MIT
__attribute__((noinline)) int replaced_in_library(int* at) { return *at + 1; }
int from_library(int* at) { return replaced_in_library(at) * 2; }
