// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
#include <stdlib.h>
struct value { size_t size; char bytes[]; };
struct entry { struct value* v OBASE_GUIDED; };
int entry_make(struct entry* e) {
    struct value* v = malloc(sizeof *v);
    if (!v) return -1;
    v->size = 0;
    e->v = v;
    return 0;
}
int entry_grow(struct entry* e, size_t size) {
    struct value* v = realloc(e->v, sizeof *v + size);
    if (!v) return -1;
    v->size = size;
    e->v = v;
    return 0;
}
