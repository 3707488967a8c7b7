// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
struct cell { int value; };
struct grid { struct cell* cells[8][8] OBASE_GUIDED; };
int grid_get(const struct grid* g, unsigned x, unsigned y) {
    const struct cell* c = g->cells[y & 7][x & 7];
    return c ? c->value : 0;
}
