// SPDX-License-Identifier: MIT
//
// A shared library of system_calls_test, with a variable whose name is one of the C library's functions.
extern "C" __attribute__((visibility("default"))) int eaccess;
int eaccess = 0;
