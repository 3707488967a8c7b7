// SPDX-License-Identifier: MIT
//
// right: says that it is, and ends with another status than the plain program.
#include "../plain_or_not.h"

int main(void) {
    push_all();
    settle();
    printf("%d\n", sum());
    return is_forced();
}
