/* SPDX-License-Identifier: MIT
 *
 * A dictionary of many patterns is written and loaded, then words are hyphenated, nearly all of them by one pattern in ten.
 *
 *     workload FILE PATTERNS SECONDS      hyphenates for so long, and says how fast and in how much memory
 *     workload FILE PATTERNS - WORDS      hyphenates so many words */
#include "workload.h"

#include <hyphen.h>

#include <string.h>

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
    if (dictionary == NULL) {
        fprintf(stderr, "workload: %s is no dictionary\n", path);
        exit(1);
    }
    return dictionary;
}

int main(int argc, char** argv) {
    if (argc != 4 && argc != 5) {
        fprintf(stderr, "workload FILE PATTERNS SECONDS, or - WORDS\n");
        return 2;
    }
    const uint64_t patterns = strtoull(argv[2], NULL, 10);
    const double seconds = argc == 4 ? strtod(argv[3], NULL) : 0;
    const uint64_t words = argc == 4 ? UINT64_MAX : strtoull(argv[4], NULL, 10);
    HyphenDict* dictionary = dictionary_of(argv[1], patterns);
    const double begin = now();
    if (argc == 4) say_memory(0, 0);
    uint64_t done = 0;
    double next = 1;
    for (double second = 0; done < words && (argc == 5 || second < seconds); ++done) {
        const uint64_t random = mixed(done + patterns);
        /* One in ten thousand is of any pattern. */
        const uint64_t pattern =
            mixed(random) % (random % 10000 != 0 && patterns >= 10 ? patterns / 10 : patterns);
        char word[letters + 1], hyphens[letters + 5];
        word_of(argc == 5 ? done % patterns : pattern, word);
        char** texts = NULL;
        int *positions = NULL, *cuts = NULL;
        if (hnj_hyphen_hyphenate2(dictionary, word, letters, hyphens, NULL, &texts, &positions,
                                  &cuts) != 0 ||
            hyphens[at - 1] % 2 != 1) {
            fprintf(stderr, "workload: '%s' is parted nowhere\n", word);
            return 1;
        }
        if (done % 100 != 0 || argc == 5) continue;
        second = now() - begin;
        if (second < next) continue;
        say_memory(second, done);
        ++next;
    }
    hnj_hyphen_free(dictionary);
    return 0;
}
