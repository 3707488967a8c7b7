// SPDX-License-Identifier: MIT
// RUN: %accept
// Of functions that are known not to keep what they get.
#include "marks.h"
#include <stdio.h>
struct item { char* name OBASE_GUIDED; };
void show(struct item* i, char* out) { snprintf(out, 64, "<%s>", i->name); }
int number(struct item* i) { int n = 0; return sscanf(i->name, "%d", &n) == 1 ? n : -1; }

#ifdef WITH_MAIN // run_corpus.py
#include <stdlib.h>
#include <string.h>
static struct item all;
static void set(const char* text) { all.name = strdup(text); }
int main(void) {
    char text[64];
    set("123 names");
    show(&all, text);
    printf("%s %d\n", text, number(&all));
}
#endif
