// SPDX-License-Identifier: MIT
//
// The program whose only purpose is that test_headers.hpp is compiled with it.
int main() { return 0; }
