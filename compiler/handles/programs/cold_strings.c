/* SPDX-License-Identifier: MIT
 *
 * A hash table of strings as any program has one, without a mark: `entries` strings of 200 bytes, of which one key in ten
 * is read, at a rate, or as fast as it goes. At the end every string is read, and compared.
 *
 * usage: cold_strings ENTRIES SECONDS READS_PER_SECOND
 *
 * SECONDS 0: until half of the memory has gone that was resident at first. READS_PER_SECOND 0: no bound.
 *
 * Prints each second: seconds, resident KiB, reads, and the processor time that 1,000 of them took.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct entry {
    struct entry* next;
    uint64_t key;
    char* value;
};

enum { value_bytes = 200, read_one_in = 10, reads_between_looks = 256 };

static struct entry** buckets;
static uint64_t bucket_count;

static uint64_t mixed(uint64_t key) {
    key ^= key >> 31;
    key *= UINT64_C(0x7fb5d329728ea185);
    key ^= key >> 27;
    key *= UINT64_C(0x81dadef4bc2dd44d);
    return key ^ key >> 33;
}

static void fill(char* value, uint64_t key) {
    uint64_t state = mixed(key);
    for (int i = 0; i < value_bytes - 1; ++i) {
        value[i] = (char)('a' + state % 26);
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        state ^= state >> 29;
    }
    value[value_bytes - 1] = 0;
}

static void put(uint64_t key) {
    struct entry* const made = malloc(sizeof *made);
    char* const value = malloc(value_bytes);
    if (made == NULL || value == NULL) {
        fprintf(stderr, "no memory for entry %" PRIu64 "\n", key);
        exit(1);
    }
    fill(value, key);
    struct entry** const at = &buckets[mixed(key) % bucket_count];
    *made = (struct entry){.next = *at, .key = key, .value = value};
    *at = made;
}

static const char* get(uint64_t key) {
    for (const struct entry* e = buckets[mixed(key) % bucket_count]; e != NULL; e = e->next)
        if (e->key == key) return e->value;
    return NULL;
}

static double read_clock(clockid_t which) {
    struct timespec at;
    clock_gettime(which, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}
static double now(void) { return read_clock(CLOCK_MONOTONIC); }
static double processor_time(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

static long resident_kib(void) {
    long pages = 0, resident = 0;
    FILE* const file = fopen("/proc/self/statm", "r");
    if (file != NULL) {
        if (fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
        fclose(file);
    }
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static unsigned long number(const char* text) {
    char* end = NULL;
    const unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end != 0) {
        fprintf(stderr, "'%s' is no whole number\n", text);
        exit(2);
    }
    return value;
}

int main(int argc, char** argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s ENTRIES SECONDS READS_PER_SECOND\n", argv[0]);
        return 2;
    }
    const uint64_t entries = number(argv[1]);
    const double seconds = (double)number(argv[2]);
    const double rate = (double)number(argv[3]);
    const uint64_t hot = entries / read_one_in;
    bucket_count = entries;
    buckets = calloc(bucket_count, sizeof *buckets);
    if (buckets == NULL || hot == 0) return 2;
    for (uint64_t key = 0; key < entries; ++key) put(key);

    const long resident_at_first = resident_kib();
    long resident = resident_at_first;
    const double begun = now();
    double told = begun, used = processor_time();
    uint64_t reads = 0, reads_told = 0, state = 1, wrong = 0;
    while (seconds > 0 ? now() - begun < seconds : 2 * resident > resident_at_first) {
        for (int i = 0; i < reads_between_looks; ++i) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            const uint64_t key = (state >> 33) % hot * read_one_in;
            const char* const value = get(key);
            wrong += value == NULL || value[0] != (char)('a' + mixed(key) % 26);
        }
        reads += reads_between_looks;
        while (rate > 0 && (double)reads > rate * (now() - begun)) usleep(500);
        if (now() - told >= 1) {
            told += 1;
            const double used_now = processor_time();
            const uint64_t done = reads - reads_told;
            resident = resident_kib();
            printf("%.0f s: %ld KiB, %" PRIu64 " reads, %.1f us\n", told - begun, resident, done,
                   1e9 * (used_now - used) / (double)(done + (done == 0)));
            fflush(stdout);
            reads_told = reads;
            used = used_now;
        }
    }
    char expected[value_bytes];
    for (uint64_t key = 0; key < entries; ++key) {
        const char* const value = get(key);
        fill(expected, key);
        wrong += value == NULL || strcmp(value, expected) != 0;
    }
    printf("%" PRIu64 " reads, %" PRIu64 " wrong\n", reads, wrong);
    for (uint64_t i = 0; i < bucket_count; ++i)
        for (struct entry* e = buckets[i]; e != NULL;) {
            struct entry* const next = e->next;
            free(e->value);
            free(e);
            e = next;
        }
    free(buckets);
    return wrong == 0 ? 0 : 1;
}
