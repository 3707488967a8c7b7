// SPDX-License-Identifier: MIT
//
// refused: other files may use it
#include "torture.h"
struct node {
    int key;
};
struct node* head OBASE_GUIDED;
int main(void) { puts(""); }
