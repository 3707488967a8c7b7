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

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct canvas all;
static void draw(int size) {
    struct circle* c = calloc(1, sizeof *c);
    c->shape.head.kind = 2;
    c->shape.head.size = size;
    c->radius = size;
    c->shape.next = all.first;
    all.first = &c->shape;
}
int main(void) {
    for (int i = 0; i < 20; ++i) draw(i);
    printf("%d %f %d %d\n", kind(&all), radius(&all), size_of_second(&all), kind_hidden(&all));
}
#endif
