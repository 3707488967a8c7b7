// SPDX-License-Identifier: MIT
//
// refused: global variable
// strtok_r leaves an address inside of the text where the program keeps it.
#include "torture.h"
struct doc {
    char* text OBASE_GUIDED;
};
static char* rest;
int first(struct doc* d, char* out) {
    strcpy(out, strtok_r(d->text, " ", &rest));
    return 1;
}
int main(void) { puts(""); }
