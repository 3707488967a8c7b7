/* SPDX-License-Identifier: MIT
 *
 * A file of many records is made: they are added, then keys are asked for, nearly all of them in one list of ten: FILE
 * RECORDS, as workload.h says. */
#include "workload.h"

#include <cdb.h>

#include <fcntl.h>

enum { lists = 256, hot_lists = 26 };

static unsigned list_of(uint64_t key) { return cdb_hash(&key, sizeof key) % lists; }

/* Not asked_for(): what is hot is a list, since each of its blocks is read. One in ten thousand is of any list. */
static uint64_t chosen(uint64_t records, uint64_t random) {
    uint64_t key = mixed(random) % records;
    while (random % 10000 != 0 && list_of(key) >= hot_lists) key = (key + 1) % records;
    return key;
}

int main(int argc, char** argv) {
    struct pace pace = pace_of(argc, argv, "FILE RECORDS");
    const int file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    static struct cdb_make making;
    if (file < 0 || cdb_make_start(&making, file) != 0) {
        perror(argv[1]);
        return 1;
    }
    for (uint64_t key = 0; key < pace.count; ++key)
        if (cdb_make_add(&making, &key, sizeof key, "", 0) != 0) {
            perror("cdb_make_add");
            return 1;
        }
    begin(&pace);
    for (uint64_t call; next_call(&pace, &call);) {
        const uint64_t key = chosen(pace.count, mixed(call + pace.count));
        if (cdb_make_exists(&making, &key, sizeof key) != 1)
            give_up("key %llu is lost", (unsigned long long)key);
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
    for (uint64_t key = 0; key < pace.count; ++key)
        if (cdb_find(&made, &key, sizeof key) != 1)
            give_up("key %llu is not in the file", (unsigned long long)key);
    return 0;
}
