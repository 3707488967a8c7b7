// SPDX-License-Identifier: MIT
// RUN: %accept
#include "marks.h"
#include <stdlib.h>
struct trie { struct trie* child[26] OBASE_GUIDED; int ends; };
int trie_add(struct trie* t, const char* word) {
    for (; *word; ++word) {
        int c = *word - 'a';
        if (c < 0 || c >= 26) return -1;
        if (!t->child[c]) t->child[c] = calloc(1, sizeof *t);
        t = t->child[c];
        if (!t) return -1;
    }
    t->ends = 1;
    return 0;
}
