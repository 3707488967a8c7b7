// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %accept
// Buffers of any element type, and addresses inside of them while the operation runs.
#include "marks.h"
#include <stdlib.h>
struct point { double x, y; };
struct list { int* values OBASE_GUIDED; struct point* points OBASE_GUIDED; int count; };
int sum(const struct list* l) {
    int total = 0;
    for (int* p = l->values; p < l->values + l->count; ++p) total += *p;
    return total;
}
double length(const struct list* l, int at) { return l->points[at].x + l->points[at + 1].y; }
void grow(struct list* l) {
    l->values = realloc(l->values, (size_t)(l->count + 1) * sizeof *l->values);
    l->points = reallocarray(l->points, (size_t)l->count + 1, sizeof *l->points);
    l->values[l->count] = 0;
    l->points[l->count] = (struct point){0, 1};
    l->count++;
}

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
static struct list all;
int main(void) {
    for (int i = 0; i < 20; ++i) grow(&all);
    printf("%d %f\n", sum(&all), length(&all, 3));
}
#endif
