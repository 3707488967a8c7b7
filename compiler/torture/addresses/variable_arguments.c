// SPDX-License-Identifier: MIT
//
// right: an address among the variable arguments of the program's own function, which hands all on.
#include "torture.h"

#include <stdarg.h>
struct item {
    char* name OBASE_GUIDED;
};
static struct item I[10];
static int log_line(char* out, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int n = vsprintf(out, format, arguments);
    va_end(arguments);
    return n;
}
void set(struct item* i, int n) {
    i->name = malloc(20);
    sprintf(i->name, "item %d", n);
}
int show(const struct item* i, char* out) { return log_line(out, "%s, %s", i->name, "a name"); }
int main(void) {
    char out[60];
    for (int i = 0; i < 10; i++) set(&I[i], i);
    settle();
    for (int i = 0; i < 10; i++) printf("%d %s\n", show(&I[i], out), out);
}
