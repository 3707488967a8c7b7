// SPDX-License-Identifier: MIT
// right:
// A struct is stored by the address of its first member.
#include "torture.h"

struct link {
    struct link* next OBASE_GUIDED;
};
struct word {
    struct link link;
    int number;
};
static struct link* words OBASE_GUIDED;

void add(int number) {
    struct word* w = calloc(1, sizeof *w);
    w->number = number;
    w->link.next = words;
    words = &w->link;
}

int sum(void) {
    int all = 0;
    for (struct link* l = words; l != NULL; l = l->next) all += ((struct word*)l)->number;
    return all;
}

int main(void) {
    for (int i = 0; i < 30; ++i) add(i);
    for (int i = 0; i < 3; ++i) settle(), printf("%d\n", sum());
}
