// SPDX-License-Identifier: MIT
//
// refused: stored into a global variable: is refused, but since it returns an address.
#include "../list.h"

struct node* first(void) { return all.head; }
int main(void) {
    push_all();
    settle();
    printf("%d\n", sum());
}
