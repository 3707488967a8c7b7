// SPDX-License-Identifier: MIT
// RUN: %refuse
#include "marks.h"
#include <stdlib.h>
struct node { int key; };
struct row { int key; struct node* value OBASE_GUIDED; };
static int by_key(const void* a, const void* b) {
    return ((const struct row*)a)->key - ((const struct row*)b)->key;
}
void sort(struct row* rows, size_t count) {
    // CHECK: error: 'qsort' moves the elements as bytes of the marked field 'row::value' [obase:bytes]
    qsort(rows, count, sizeof *rows, by_key);
}
