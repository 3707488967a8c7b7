/* SPDX-License-Identifier: MIT
 *
 * The load of `obase bench fragmentation --program synthetic`: what a cache does to its heap, without the cache. By hand for
 * handles, as by_hand.h says.
 *
 * Values of 240 bytes are put in, then values of 492, while a bound on their sum evicts others at random, as Redis does
 * with maxmemory 100mb, allkeys-lru and one sample. Then nothing is allocated any more. A thread that reads a clock and
 * values all the time says what the longest gap between two readings was, after the load.
 *
 * usage: load SCALE SECONDS...      SCALE divides all counts; resident memory is read at each of SECONDS after the load.
 * Prints one JSON object.
 */
#define _GNU_SOURCE
#include "tools/fragmentation/by_hand.h"
#include "tools/fragmentation/load_parts.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { table_size = 1 << 20, overhead = 90 }; /* what Redis needs for a key besides its value */

struct value {
    void* home;
    size_t bytes;
};
static struct value values[table_size];
static size_t live, live_bytes, bound;
static volatile int stop_reading;
static double longest_gap;

static void evict(void) {
    struct value* last = &values[live - 1];
    struct value* victim = &values[next() % live];
    FREE(victim->home);
    live_bytes -= victim->bytes;
    *victim = *last;
    --live;
}

static void put(size_t count, size_t bytes) {
    for (size_t i = 0; i < count; ++i) {
        while (live != 0 && (live_bytes + live * overhead + bytes > bound || live == table_size))
            evict();
        void* home = ALLOCATE(bytes);
        if (home == NULL) exit(1);
        memset(AT(home), (int)(bytes & 0xff), bytes);
        values[live].home = home;
        values[live].bytes = bytes;
        ++live;
        live_bytes += bytes;
        POLL();
    }
}

static size_t wrong;
static void* read_all(void* unused) {
    unsigned long mark = ENTER();
    double last = now();
    for (size_t at = 0; !stop_reading; at = (at + 7919) % live) {
        const struct value* v = &values[at];
        if (AT(v->home)[v->bytes / 2] != (unsigned char)v->bytes) ++wrong;
        POLL();
        const double time = now();
        if (time - last > longest_gap) longest_gap = time - last;
        last = time;
    }
    LEAVE(mark);
    return unused;
}

int main(int argc, char** argv) {
    const size_t scale = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    if (scale == 0 || argc < 3) {
        fprintf(stderr, "usage: %s SCALE SECONDS...\n", argv[0]);
        return 2;
    }
    unsigned long mark = ENTER();
    bound = ((size_t)100 << 20) / scale;
    put(700000 / scale, 240);
    put(170000 / scale, 492);
    const double begin = now();
    pthread_t reader;
    if (pthread_create(&reader, NULL, read_all, NULL) != 0) return 1;
    char rss[1024] = "";
    char pss[1024] = "";
    for (int i = 2; i < argc; ++i) {
        OFFLINE();
        const double left = begin + atof(argv[i]) - now();
        if (left > 0) usleep((unsigned)(left * 1e6));
        ONLINE();
        snprintf(rss + strlen(rss), sizeof rss - strlen(rss), "%s\"%s\": %.1f", i == 2 ? "" : ", ",
                 argv[i], memory_mib("/proc/self/status", "VmRSS:"));
        snprintf(pss + strlen(pss), sizeof pss - strlen(pss), "%s\"%s\": %.1f", i == 2 ? "" : ", ",
                 argv[i], memory_mib("/proc/self/smaps_rollup", "Pss:"));
    }
    const double took = now() - begin;
    stop_reading = 1;
    OFFLINE();
    pthread_join(reader, NULL);
    ONLINE();
    unsigned long moved = 0;
    unsigned long vetoed = 0;
    double share = 0;
#ifdef LOAD_OF_HANDLES
    struct obase_handles_figures f;
    obase_handles_read_figures(&f);
    moved = f.moved;
    vetoed = f.vetoed;
    share = took > 0 ? (double)f.collector_ns * 1e-9 / took : 0;
#else
    (void)took;
#endif
    printf("{\"rss_mib\": {%s}, \"pss_mib\": {%s}, \"live_mib\": %.1f, \"longest_stall_us\": %.0f, "
           "\"moved\": %lu, \"vetoed\": %lu, \"cpu_share\": %.3f, \"wrong\": %zu}\n",
           rss, pss, (double)live_bytes / 1048576, longest_gap * 1e6, moved, vetoed, share, wrong);
    LEAVE(mark);
    return 0; /* whoever reads it looks at "wrong" */
}
