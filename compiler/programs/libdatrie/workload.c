/* SPDX-License-Identifier: MIT
 *
 * A dictionary of long keys, of which few are asked for: builds it, then looks keys up for some
 * seconds, and says on stdout how fast, and after each second how much memory the process has.
 *
 *     workload KEYS SECONDS
 *
 * One key in ten gets all look-ups but one in ten thousand, which is of any key. */
#include <datrie/trie.h>

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
    const int length = least_length + (int)(mixed(digits) % (uint64_t)(most_length - least_length));
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

/* A look-up of one in ten keys, which lie anywhere; one in ten thousand is of any key. */
static uint64_t chosen(uint64_t keys, uint64_t random) {
    const uint64_t one = random >> 16;
    return random % 10000 == 0 ? mixed(one) % keys : mixed(one % (keys / 10 + 1)) % keys;
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
            const uint64_t number = chosen(keys, mixed(lookups + keys));
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
