// SPDX-License-Identifier: MIT
//
// refused: keeps it
#include "torture.h"
struct doc {
    char* text OBASE_GUIDED;
};
int first(struct doc* d, char* out) {
    strcpy(out, strtok(d->text, " "));
    return 1;
}
int main(void) { puts(""); }
