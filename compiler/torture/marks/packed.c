// SPDX-License-Identifier: MIT
//
// refused: obase:mark-alignment
#include "torture.h"
struct __attribute__((packed)) node {
    char tag;
    struct node* next OBASE_GUIDED;
};
int main(void) { puts(""); }
