// SPDX-License-Identifier: MIT
//
// right: says that objects move, and has none that can.
static long memory[30][2];
#define NODE(key) ((struct node*)memory[key])
#include "../list.h"

int main(void) {
    push_all();
    settle();
    printf("%d\n", sum());
}
