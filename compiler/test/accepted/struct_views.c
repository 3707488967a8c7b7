// SPDX-License-Identifier: MIT
// RUN: %accept
// Structs that have the same marked fields where they overlap: a first member, a head without any, a copy of the
// declaration. And assembly that is none.
#include "marks.h"
struct head { int kind; int size; };
struct shape { struct head head; struct shape* next OBASE_GUIDED; };
struct circle { struct shape shape; double radius; };
struct same { int kind; int size; struct shape* next OBASE_GUIDED; };
struct canvas { struct shape* first OBASE_GUIDED; };
int kind(struct canvas* c) { return ((struct head*)c->first)->kind; }
double radius(struct canvas* c) { return ((struct circle*)c->first)->radius; }
int size_of_second(struct canvas* c) { return ((struct same*)c->first)->next->head.size; }
int kind_hidden(struct canvas* c) {
    struct shape* s = c->first;
    __asm__("" : : "r"(c) : "memory");
    return s->head.kind;
}
