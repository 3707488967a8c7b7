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
