// SPDX-License-Identifier: MIT
//
// refused: elements of this array of pointers are slots
// The array comes from where its elements are none.
#include "torture.h"
struct lines {
    char** line OBASE_GUIDED;
};
void take(struct lines* l, char** from) { l->line = from; }
int main(void) { puts(""); }
