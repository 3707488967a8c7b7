// SPDX-License-Identifier: MIT
//
// refused: an address inside of a managed object is stored
// What begins as the object's address goes on inside of it.
#include "torture.h"
struct item {
    char* text OBASE_GUIDED;
};
void trim(struct item* i) {
    char* t = i->text;
    while (*t == ' ') t++;
    i->text = t;
}
int main(void) { puts(""); }
