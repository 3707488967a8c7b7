// SPDX-License-Identifier: MIT
//
// encoded: says that nothing sees it, and is refused.
#include "../list.h"

struct node* first(void) { return all.head; }
int main(void) {
    push_all();
    settle();
    printf("%d\n", sum());
}
