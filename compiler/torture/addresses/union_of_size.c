// SPDX-License-Identifier: MIT
//
// right: an object that is a union itself, whose member's address is the object's.
#include "torture.h"
union word {
    long number;
    double real;
};
struct cell {
    union word* word OBASE_GUIDED;
};
static struct cell C[12];
static void add(long* to, long n) { *to += n; }
void set(struct cell* c, long n) {
    c->word = malloc(sizeof *c->word);
    c->word->number = n;
}
void more(struct cell* c) { add(&c->word->number, 5); }
long number(const struct cell* c) { return c->word->number; }
void set_real(struct cell* c) { *(&c->word->real) = 0.5; }
int main(void) {
    for (int i = 0; i < 12; i++) set(&C[i], i);
    settle();
    long sum = 0;
    for (int i = 0; i < 12; i++) more(&C[i]);
    for (int i = 0; i < 12; i++) sum += number(&C[i]);
    set_real(&C[3]);
    settle();
    printf("%ld %d\n", sum, number(&C[3]) != 0);
}
