// SPDX-License-Identifier: MIT
//
// right: structs with a common first member, which has the mark.
#include "torture.h"
struct shape {
    struct shape* next OBASE_GUIDED;
    int kind;
};
struct circle {
    struct shape base;
    double radius;
};
struct square {
    struct shape base;
    double side;
};
struct canvas {
    struct shape* first OBASE_GUIDED;
};
static struct canvas C;
void add_circle(struct canvas* c, double radius) {
    struct circle* s = malloc(sizeof *s);
    s->base.kind = 0;
    s->radius = radius;
    s->base.next = c->first;
    c->first = &s->base;
}
void add_square(struct canvas* c, double side) {
    struct square* s = malloc(sizeof *s);
    s->base.kind = 1;
    s->side = side;
    s->base.next = c->first;
    c->first = (struct shape*)s;
}
double size(const struct canvas* c) {
    double s = 0;
    for (const struct shape* p = c->first; p; p = p->next)
        s += p->kind ? ((const struct square*)p)->side : ((const struct circle*)p)->radius;
    return s;
}
int main(void) {
    for (int i = 0; i < 30; i++) {
        add_circle(&C, i);
        add_square(&C, i / 2.0);
    }
    settle();
    printf("%g\n", size(&C));
}
