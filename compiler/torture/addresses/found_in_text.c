// SPDX-License-Identifier: MIT
//
// refused: returns the address of a managed object
#include "torture.h"
struct item {
    char* line OBASE_GUIDED;
};
const char* extension(const struct item* i) { return strrchr(i->line, '.'); }
int main(void) { puts(""); }
