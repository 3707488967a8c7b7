// SPDX-License-Identifier: MIT
//
// right: says that it is, and an object has two owners, which shows under audit alone.
#include "../two_owners.h"

int main(void) {
    push_all();
    settle();
    share();
    printf("%d\n", sum());
}
