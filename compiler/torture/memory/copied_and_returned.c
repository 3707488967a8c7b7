// SPDX-License-Identifier: MIT
// right:
// A text is made by a function that returns what strcpy returns.
#include "torture.h"

enum { most = 30 };
struct words {
    char* text[most] OBASE_GUIDED;
};
static struct words all;

static char* copy_of(const char* text) { return strcpy((char*)malloc(strlen(text) + 1), text); }

void set(int at, const char* text) { all.text[at] = copy_of(text); }

void say(int at) { printf("%s\n", all.text[at]); }

int main(void) {
    char text[20];
    for (int i = 0; i < most; ++i) {
        snprintf(text, sizeof text, "word %d", i);
        set(i, text);
    }
    for (int i = 0; i < most; ++i) settle(), say(i);
}
