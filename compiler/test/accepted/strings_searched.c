// SPDX-License-Identifier: MIT
// RUN: %accept
// An address inside of the object that stays in the operation.
#include "marks.h"
#include <stdlib.h>
#include <string.h>
struct item { char* line OBASE_GUIDED; };
int length_of_key(struct item* i) { return (int)(strchr(i->line, '=') - i->line); }
long sum(struct item* i) {
    char* at = i->line;
    long all = 0;
    while (*at) {
        char* end;
        all += strtol(at, &end, 10);
        if (end == at) break;
        at = end;
    }
    return all;
}
int starts(struct item* i, const char* with) { return strstr(i->line, with) == i->line; }

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
static struct item all;
static void set(const char* text) {
    free(all.line);
    all.line = strdup(text);
}
int main(void) {
    set("key=value");
    printf("%d %d\n", length_of_key(&all), starts(&all, "key"));
    set("1 22 333 x");
    printf("%ld\n", sum(&all));
}
#endif
