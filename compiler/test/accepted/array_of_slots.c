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

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
static struct trie all;
static int has(const char* word) {
    const struct trie* t = &all;
    for (; t && *word; ++word) t = t->child[*word - 'a'];
    return t && t->ends;
}
int main(void) {
    int wrong = trie_add(&all, "marked") + trie_add(&all, "mark") + trie_add(&all, "object");
    printf("%d %d %d %d %d\n", wrong, has("marked"), has("mark"), has("object"), has("objects"));
}
#endif
