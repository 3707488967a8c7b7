// SPDX-License-Identifier: MIT
//
// refused: marked variable
#include "torture.h"
struct node {
    int key;
};
static struct node* head OBASE_GUIDED;
struct node** where = &head;
int main(void) { puts(""); }
