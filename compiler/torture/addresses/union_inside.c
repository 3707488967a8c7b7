// SPDX-License-Identifier: MIT
//
// right: an object with a union, the address of whose members goes to functions.
#include "torture.h"
struct value {
    int kind;
    union {
        long number;
        double real;
        char text[16];
    } u;
};
struct cell {
    struct value* value OBASE_GUIDED;
};
static struct cell C[12];
static void set_number(long* to, long n) { *to = n; }
static void set_real(double* to, double r) { *to = r; }
void set(struct cell* c, int i) {
    c->value = malloc(sizeof *c->value);
    c->value->kind = i % 3;
    if (i % 3 == 0) set_number(&c->value->u.number, i);
    if (i % 3 == 1) set_real(&c->value->u.real, i / 4.0);
    if (i % 3 == 2) snprintf(c->value->u.text, sizeof c->value->u.text, "text %d", i);
}
void show(const struct cell* c) {
    const struct value* v = c->value;
    if (v->kind == 0) printf("%ld\n", v->u.number);
    if (v->kind == 1) printf("%g\n", v->u.real);
    if (v->kind == 2) printf("%s\n", v->u.text);
}
int main(void) {
    for (int i = 0; i < 12; i++) set(&C[i], i);
    settle();
    for (int i = 0; i < 12; i++) show(&C[i]);
}
