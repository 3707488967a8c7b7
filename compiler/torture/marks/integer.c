// SPDX-License-Identifier: MIT
//
// refused: obase:mark-type
#include "torture.h"
struct node {
    uintptr_t next OBASE_GUIDED;
};
int main(void) { puts(""); }
