// SPDX-License-Identifier: MIT
// RUN: %accept
// How far a byte is from the beginning of its own object stays the same when the object moves.
#include "marks.h"
#include <string.h>
struct box { char* text OBASE_GUIDED; };
long place_of(const struct box* b, char c) {
    const char* at = b->text;
    while (*at && *at != c) ++at;
    return at - b->text;
}
long place_found(const struct box* b, char c) {
    const char* text = b->text;
    const char* at = strchr(text, c);
    return at ? at - text : -1;
}
long length(const struct box* b) { return strlen(b->text) - (b->text + 1 - b->text); }

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct box all;
static void set(void) {
    all.text = malloc(20);
    strcpy(all.text, "key=value");
}
int main(void) {
    set();
    printf("%ld %ld %ld\n", place_of(&all, '='), place_found(&all, 'v'), length(&all));
}
#endif
