// SPDX-License-Identifier: MIT
//
// right: says that objects move, and gives the collector no time.
#include "../list.h"

int main(void) {
    push_all();
    printf("%d\n", sum());
}
