// SPDX-License-Identifier: MIT
//
// right: the newest entry is in a field of its own until the next one comes.
#include "torture.h"
struct entry {
    struct entry* next OBASE_GUIDED;
    int key;
};
struct journal {
    struct entry* newest OBASE_GUIDED;
    struct entry* older OBASE_GUIDED;
};
static struct journal J;
void add(struct journal* j, int key) {
    struct entry* e = malloc(sizeof *e);
    e->key = key;
    e->next = NULL;
    if (j->newest) {
        j->newest->next = j->older;
        j->older = j->newest;
    }
    j->newest = e;
}
long sum(const struct journal* j) {
    long s = j->newest ? j->newest->key : 0;
    for (const struct entry* e = j->older; e; e = e->next) s = s * 3 % 10007 + e->key;
    return s;
}
int main(void) {
    for (int i = 0; i < 60; i++) {
        add(&J, i);
        if (i % 20 == 0) settle();
    }
    settle();
    printf("%ld\n", sum(&J));
}
