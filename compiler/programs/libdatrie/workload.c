/* SPDX-License-Identifier: MIT
 *
 * A dictionary of long keys, of which few are asked for: builds it, then looks keys up for some
 * seconds, and says on stdout how fast, and after each second how much memory the process has.
 *
 *     workload KEYS SECONDS
 *
 * The ranks of keys are Zipf distributed, with exponent 0.99; a rank's key lies anywhere. */
#include <datrie/trie.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { least_length = 60, most_length = 400, longest = 512 };

static uint64_t mixed(uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Twelve digits that tell keys apart, then text. */
static void make_key(uint64_t number, AlphaChar* key) {
    uint64_t digits = mixed(number);
    const int length =
        least_length + (int)(mixed(digits) % (uint64_t)(most_length - least_length));
    for (int i = 0; i < length; ++i) {
        key[i] = 'a' + (AlphaChar)(digits % 26);
        digits = i % 12 == 11 ? mixed(digits + number) : digits / 26;
    }
    key[length] = 0;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void say_memory(double second, uint64_t lookups) {
    char line[256];
    long anonymous = 0, file = 0, shared = 0;
    FILE* status = fopen("/proc/self/status", "r");
    if (status == NULL) {
        perror("/proc/self/status");
        exit(1);
    }
    while (fgets(line, sizeof line, status) != NULL) {
        sscanf(line, "RssAnon: %ld", &anonymous);
        sscanf(line, "RssFile: %ld", &file);
        sscanf(line, "RssShmem: %ld", &shared);
    }
    fclose(status);
    printf("%.1f %llu %ld %ld\n", second, (unsigned long long)lookups, anonymous, file + shared);
    fflush(stdout);
}

/* The rank is in [0, count): the inverse of the distribution, with the sum taken as an integral. */
static uint64_t zipf(uint64_t count, uint64_t random) {
    const double s = 1 - 0.99;
    const double u = (double)(random >> 11) / 9007199254740992.0;
    const double rank = pow(u * (pow((double)count + 1, s) - 1) + 1, 1 / s) - 1;
    return rank < (double)count ? (uint64_t)rank : count - 1;
}

int main(int argc, char** argv) {
    if (argc != 3) {
        fprintf(stderr, "workload KEYS SECONDS\n");
        return 2;
    }
    const uint64_t keys = strtoull(argv[1], NULL, 10);
    const double seconds = strtod(argv[2], NULL);
    AlphaMap* letters = alpha_map_new();
    alpha_map_add_range(letters, 'a', 'z');
    Trie* dictionary = trie_new(letters);
    alpha_map_free(letters);
    AlphaChar key[longest];
    for (uint64_t i = 0; i < keys; ++i) {
        make_key(i, key);
        if (!trie_store(dictionary, key, (TrieData)i)) {
            fprintf(stderr, "workload: key %llu was not stored\n", (unsigned long long)i);
            return 1;
        }
    }
    const double begin = now();
    say_memory(0, 0);
    uint64_t lookups = 0;
    for (double next = 1, second = 0; second < seconds; second = now() - begin) {
        for (int i = 0; i < 1000; ++i, ++lookups) {
            const uint64_t number = mixed(zipf(keys, mixed(lookups + keys))) % keys;
            TrieData data = TRIE_DATA_ERROR;
            make_key(number, key);
            if (!trie_retrieve(dictionary, key, &data) || data != (TrieData)number) {
                fprintf(stderr, "workload: key %llu has the value %lld\n",
                        (unsigned long long)number, (long long)data);
                return 1;
            }
        }
        if (second >= next) {
            say_memory(second, lookups);
            ++next;
        }
    }
    trie_free(dictionary);
    return 0;
}
