// SPDX-License-Identifier: MIT
//
// refused: An object has one owner
#include "torture.h"
struct reader {
    char* line OBASE_GUIDED;
    char* at;
};
double next(struct reader* r) {
    char* end;
    double v = strtod(r->line, &end);
    r->at = end;
    return v;
}
int main(void) { puts(""); }
