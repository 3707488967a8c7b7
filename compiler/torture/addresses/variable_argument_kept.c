// SPDX-License-Identifier: MIT
//
// refused: takes it by va_arg
#include "torture.h"

#include <stdarg.h>
struct item {
    char* name OBASE_GUIDED;
};
static const char* kept;
static void keep(int count, ...) {
    va_list names;
    va_start(names, count);
    while (count-- > 0) kept = va_arg(names, const char*);
    va_end(names);
}
void hold(const struct item* i) { keep(1, i->name); }
int main(void) { puts(""); }
