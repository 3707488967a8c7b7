// SPDX-License-Identifier: MIT
//
// refused: ends with each thread
#include "torture.h"
struct node {
    int key;
};
static _Thread_local struct node* head OBASE_GUIDED;
int main(void) { puts(""); }
