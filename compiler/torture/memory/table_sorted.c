// SPDX-License-Identifier: MIT
//
// refused: not compiled here
// qsort over the elements, which are slots.
#include "torture.h"
struct lines {
    char** line OBASE_GUIDED;
    size_t count;
};
static int by_text(const void* a, const void* b) {
    return strcmp(*(char* const*)a, *(char* const*)b);
}
void sort(struct lines* l) { qsort(l->line, l->count, sizeof *l->line, by_text); }
int main(void) { puts(""); }
