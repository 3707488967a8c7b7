/* SPDX-License-Identifier: MIT
 *
 * A file of many records is made: they are added, then keys are asked for, nearly all of them in one list of ten.
 *
 *     workload FILE RECORDS SECONDS      asks for so long, and says how fast and in how much memory
 *     workload FILE RECORDS - ASKED      asks for so many keys */
#include "workload.h"

#include <cdb.h>

#include <fcntl.h>
#include <string.h>

enum { lists = 256, hot_lists = 26 };

static unsigned list_of(uint64_t key) { return cdb_hash(&key, sizeof key) % lists; }

/* One in ten thousand is of any list. */
static uint64_t chosen(uint64_t records, uint64_t random) {
    uint64_t key = mixed(random) % records;
    while (random % 10000 != 0 && list_of(key) >= hot_lists) key = (key + 1) % records;
    return key;
}

int main(int argc, char** argv) {
    if (argc != 4 && argc != 5) {
        fprintf(stderr, "workload FILE RECORDS SECONDS, or - ASKED\n");
        return 2;
    }
    const uint64_t records = strtoull(argv[2], NULL, 10);
    const double seconds = argc == 4 ? strtod(argv[3], NULL) : 0;
    const uint64_t asked_at_most = argc == 4 ? UINT64_MAX : strtoull(argv[4], NULL, 10);
    const int file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    static struct cdb_make making;
    if (file < 0 || cdb_make_start(&making, file) != 0) {
        perror(argv[1]);
        return 1;
    }
    for (uint64_t key = 0; key < records; ++key)
        if (cdb_make_add(&making, &key, sizeof key, "", 0) != 0) {
            perror("cdb_make_add");
            return 1;
        }
    const double begin = now();
    if (argc == 4) say_memory(0, 0);
    uint64_t asked = 0;
    double next = 1;
    for (double second = 0; asked < asked_at_most && (argc == 5 || second < seconds); ++asked) {
        const uint64_t key = chosen(records, mixed(asked + records));
        if (cdb_make_exists(&making, &key, sizeof key) != 1) {
            fprintf(stderr, "workload: key %llu is lost\n", (unsigned long long)key);
            return 1;
        }
        if (asked % 100 != 0 || argc == 5) continue;
        second = now() - begin;
        if (second < next) continue;
        say_memory(second, asked);
        ++next;
    }
    if (cdb_make_finish(&making) != 0) {
        perror("cdb_make_finish");
        return 1;
    }
    struct cdb made;
    if (cdb_init(&made, file) != 0) {
        perror("cdb_init");
        return 1;
    }
    for (uint64_t key = 0; key < records; ++key)
        if (cdb_find(&made, &key, sizeof key) != 1) {
            fprintf(stderr, "workload: key %llu is not in the file\n", (unsigned long long)key);
            return 1;
        }
    return 0;
}
