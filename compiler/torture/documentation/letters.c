// SPDX-License-Identifier: MIT
//
// right: a trie with an array of marked pointers in each node.
#include "torture.h"
struct trie {
    struct trie* child[26] OBASE_GUIDED;
    int words;
};
struct dictionary {
    struct trie* root OBASE_GUIDED;
};
static struct dictionary D;
void add(struct dictionary* d, const char* word) {
    if (!d->root) d->root = calloc(1, sizeof *d->root);
    struct trie* t = d->root;
    for (; *word; word++) {
        if (!t->child[*word - 'a']) t->child[*word - 'a'] = calloc(1, sizeof *t);
        t = t->child[*word - 'a'];
    }
    t->words++;
}
int count(const struct dictionary* d, const char* word) {
    const struct trie* t = d->root;
    for (; t && *word; word++) t = t->child[*word - 'a'];
    return t ? t->words : 0;
}
static void clear_below(struct trie* t) {
    for (int i = 0; i < 26; i++)
        if (t->child[i]) clear_below(t->child[i]);
    free(t);
}
void clear(struct dictionary* d) {
    if (d->root) clear_below(d->root);
    d->root = NULL;
}
int main(void) {
    const char* words[] = {"tea", "ten", "to", "inn", "in", "i", "tea", "an"};
    for (int i = 0; i < 8; i++) add(&D, words[i]);
    settle();
    for (int i = 0; i < 8; i++) printf("%d", count(&D, words[i]));
    settle();
    printf(" %d\n", count(&D, "te"));
    clear(&D);
    add(&D, "again");
    settle();
    printf("%d %d\n", count(&D, "again"), count(&D, "tea"));
}
