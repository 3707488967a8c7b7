// SPDX-License-Identifier: MIT
//
// right: says that it is, and prints something else than the plain program.
#include "../plain_or_not.h"

int main(void) {
    push_all();
    settle();
    printf("%d %d\n", sum(), is_forced());
}
