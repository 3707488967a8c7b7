// SPDX-License-Identifier: MIT
//
// refused: returns: says that it is, and is right.
#include "../list.h"

int main(void) {
    push_all();
    settle();
    printf("%d\n", sum());
}
