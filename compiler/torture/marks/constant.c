// SPDX-License-Identifier: MIT
//
// refused: obase:mark-const
#include "torture.h"
struct node {
    char* const name OBASE_GUIDED;
};
int main(void) { puts(""); }
