/* SPDX-License-Identifier: MIT
 *
 * A dictionary of many patterns is written and loaded, then words are hyphenated, nearly all of them by one pattern in ten:
 * FILE PATTERNS, as workload.h says. */
#include "workload.h"

#include <hyphen.h>

enum { letters = 10, at = 5 };

/* The letters of a pattern, which its number decides; between two of them a word may be parted. */
static void word_of(uint64_t pattern, char* word) {
    uint64_t left = mixed(pattern + 1);
    for (int i = 0; i < letters; ++i, left /= 26) word[i] = (char)('a' + left % 26);
    word[letters] = '\0';
}

static HyphenDict* dictionary_of(const char* path, uint64_t patterns) {
    FILE* file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    fputs("UTF-8\n", file);
    for (uint64_t pattern = 0; pattern < patterns; ++pattern) {
        char word[letters + 1];
        word_of(pattern, word);
        fprintf(file, "%.*s1%s\n", at, word, word + at);
    }
    if (fclose(file) != 0) {
        perror(path);
        exit(1);
    }
    HyphenDict* dictionary = hnj_hyphen_load(path);
    if (dictionary == NULL) give_up("%s is no dictionary", path);
    return dictionary;
}

int main(int argc, char** argv) {
    struct pace pace = pace_of(argc, argv, "FILE PATTERNS");
    HyphenDict* dictionary = dictionary_of(argv[1], pace.count);
    begin(&pace);
    for (uint64_t call; next_call(&pace, &call);) {
        char word[letters + 1], hyphens[letters + 5];
        word_of(asked_for(&pace, call), word);
        char** texts = NULL;
        int *positions = NULL, *cuts = NULL;
        if (hnj_hyphen_hyphenate2(dictionary, word, letters, hyphens, NULL, &texts, &positions,
                                  &cuts) != 0 ||
            hyphens[at - 1] % 2 != 1)
            give_up("'%s' is parted nowhere", word);
    }
    hnj_hyphen_free(dictionary);
    return 0;
}
