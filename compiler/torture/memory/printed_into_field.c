// SPDX-License-Identifier: MIT
//
// right: asprintf into the field itself.
#define _GNU_SOURCE
#include "torture.h"

#include <stdarg.h>
struct item {
    char* label OBASE_GUIDED;
};
static struct item I[30];
void set(struct item* i, int n) {
    if (asprintf(&i->label, "label %d of %s", n, "thirty") < 0) i->label = NULL;
}
void set_by(struct item* i, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    free(i->label);
    i->label = NULL;
    if (vasprintf(&i->label, format, arguments) < 0) abort();
    va_end(arguments);
}
void show(const struct item* i) { puts(i->label); }
int main(void) {
    for (int i = 0; i < 30; i++) set(&I[i], i);
    settle();
    for (int i = 0; i < 30; i += 2) set_by(&I[i], "%d and %d", i, i + 1);
    settle();
    for (int i = 0; i < 30; i++) show(&I[i]);
}
