// SPDX-License-Identifier: MIT
//
// refused: order of two managed objects
// Locks are often taken in the order of addresses.
#include "torture.h"
struct account {
    long money;
};
struct bank {
    struct account* a[10] OBASE_GUIDED;
};
int before(const struct bank* b, int i, int j) { return b->a[i] < b->a[j]; }
int main(void) { puts(""); }
