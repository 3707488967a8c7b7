// SPDX-License-Identifier: MIT
//
// refused: obase:union
#include "torture.h"
struct value {
    int kind;
    union {
        long number;
        char* text OBASE_GUIDED;
    };
};
int main(void) {
    struct value v = {0, {3}};
    printf("%ld\n", v.number);
}
