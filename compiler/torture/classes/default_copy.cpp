// SPDX-License-Identifier: MIT
//
// refused: obase:struct-copy
#include "torture.h"
struct list {
    int* first OBASE_GUIDED = nullptr;
};
void copy(list& to, const list& from) { to = from; }
int main() { std::puts(""); }
