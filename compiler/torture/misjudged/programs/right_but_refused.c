// SPDX-License-Identifier: MIT
//
// right: says that it is, and returns an address.
#include "../list.h"

struct node* first(void) { return all.head; }
int main(void) {
    push_all();
    settle();
    printf("%d\n", sum());
}
