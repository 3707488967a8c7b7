// SPDX-License-Identifier: MIT
//
// refused: obase:mark-place
#include "torture.h"
int main(void) {
    char* text OBASE_GUIDED = malloc(3);
    free(text);
}
