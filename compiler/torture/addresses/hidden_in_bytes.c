// SPDX-License-Identifier: MIT
//
// refused: global variable
#include "torture.h"
struct node {
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static uint64_t kept;
void keep(const struct list* l) {
    const struct node* n = l->head;
    uint64_t bits;
    memcpy(&bits, &n, sizeof bits);
    kept = bits;
}
int main(void) { puts(""); }
