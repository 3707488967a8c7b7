// SPDX-License-Identifier: MIT
//
// right: a buffer is replaced by a larger one, which gets what was in it.
#include "torture.h"
struct queue {
    int* ring OBASE_GUIDED;
    unsigned first, count, size;
};
static struct queue Q;
void put(struct queue* q, int n) {
    if (q->count == q->size) {
        unsigned size = q->size ? 2 * q->size : 4;
        int* ring = malloc(size * sizeof *ring);
        for (unsigned i = 0; i < q->count; i++) ring[i] = q->ring[(q->first + i) % q->size];
        free(q->ring);
        q->ring = ring;
        q->first = 0;
        q->size = size;
    }
    q->ring[(q->first + q->count++) % q->size] = n;
}
int take(struct queue* q) {
    int n = q->ring[q->first];
    q->first = (q->first + 1) % q->size;
    q->count--;
    return n;
}
int main(void) {
    long sum = 0;
    for (int i = 0; i < 200; i++) {
        put(&Q, i);
        if (i % 3 == 0) sum = sum * 7 % 100003 + take(&Q);
        if (i % 25 == 0) settle();
    }
    while (Q.count) sum = sum * 7 % 100003 + take(&Q);
    printf("%ld\n", sum);
}
