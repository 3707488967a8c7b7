// SPDX-License-Identifier: MIT
//
// right: the text is moved to the beginning of its memory.
#include "torture.h"
struct item {
    char* text OBASE_GUIDED;
};
static struct item I[10];
void set(struct item* i, const char* text) { i->text = strdup(text); }
void trim(struct item* i) {
    const char* t = i->text;
    while (*t == ' ') t++;
    memmove(i->text, t, strlen(t) + 1);
}
int print(const struct item* i) { return printf("<%s>\n", i->text); }
int main(void) {
    for (int i = 0; i < 10; i++) set(&I[i], i % 2 ? "   text" : " another one ");
    settle();
    for (int i = 0; i < 10; i++) trim(&I[i]);
    settle();
    for (int i = 0; i < 10; i++) print(&I[i]);
}
