// SPDX-License-Identifier: MIT
//
// right: buffers of numbers, structs and wide characters that grow by realloc and reallocarray.
#include "torture.h"

#include <wchar.h>
struct point {
    double x, y;
};
struct all {
    int* numbers OBASE_GUIDED;
    struct point* points OBASE_GUIDED;
    wchar_t* text OBASE_GUIDED;
    size_t count, capacity;
};
static struct all A;
void add(struct all* a, int n) {
    if (a->count == a->capacity) {
        a->capacity = a->capacity ? 2 * a->capacity : 4;
        a->numbers = realloc(a->numbers, a->capacity * sizeof *a->numbers);
        a->points = reallocarray(a->points, a->capacity, sizeof *a->points);
        a->text = reallocarray(a->text, a->capacity, sizeof *a->text);
    }
    a->numbers[a->count] = n;
    a->points[a->count].x = n / 2.0;
    a->points[a->count].y = n * 2.0;
    a->text[a->count] = (wchar_t)('a' + n % 26);
    a->count++;
}
double sum(const struct all* a) {
    double s = 0;
    for (const int *n = a->numbers, *end = n + a->count; n != end; n++) s += *n;
    for (size_t i = 0; i < a->count; i++) s += a->points[i].x + a->points[i].y + a->text[i];
    return s;
}
void reverse(struct all* a) {
    for (int *low = a->numbers, *high = low + a->count - 1; low < high; low++, high--) {
        int t = *low;
        *low = *high;
        *high = t;
    }
}
int first(const struct all* a) { return a->numbers[0]; }
int main(void) {
    for (int i = 0; i < 100; i++) {
        add(&A, i);
        if (i % 20 == 0) settle();
    }
    settle();
    printf("%g\n", sum(&A));
    reverse(&A);
    settle();
    printf("%g %d\n", sum(&A), first(&A));
}
