// SPDX-License-Identifier: MIT
//
// audit: two-fields: says that it is, and is right.
#include "../list.h"

int main(void) {
    push_all();
    settle();
    printf("%d\n", sum());
}
