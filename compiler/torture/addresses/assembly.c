// SPDX-License-Identifier: MIT
//
// refused: inline assembly
#include "torture.h"
struct node {
    long key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
long first(const struct list* l) {
    long key;
    const struct node* n = l->head;
    __asm__("movq (%1), %0" : "=r"(key) : "r"(n));
    return key;
}
int main(void) { puts(""); }
