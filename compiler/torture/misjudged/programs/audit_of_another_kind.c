// SPDX-License-Identifier: MIT
//
// audit: stale-use: the error is another one, two-fields.
#include "../two_owners.h"

int main(void) {
    push_all();
    settle();
    share();
    printf("%d\n", sum());
}
