/* SPDX-License-Identifier: MIT
 *
 * The load of `obase bench fragmentation --program churn`: a heap that is replaced three times an hour, at random, while
 * the sizes of what is born change from hour to hour. By hand for handles, as by_hand.h says.
 *
 * usage: churn SCALE HOURS SECONDS     100 MiB / SCALE live; an hour is made to take SECONDS, if the machine can.
 *
 * Prints one JSON object. "hours" has, for the end of each hour, live_mib (sum of the sizes), rss_mib (without the
 * load's own list of what lives), tables_mib (of forwarding) and page_tables_mib (the kernel's).
 */
#define _GNU_SOURCE
#include "tools/fragmentation/by_hand.h"
#include "tools/fragmentation/load_parts.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { turnovers = 3, kinds = 6, values_in_a_step = 1000 };
static const size_t mean_bytes[kinds] = {240, 492, 96, 1000, 150, 48};

struct value {
    unsigned char* home;
    size_t bytes;
};
static struct value* values;
static size_t room, live, most_live, live_bytes, bound, wrong;

static void wait_until(double time) {
    const double left = time - now();
    if (left <= 0) return;
    const struct timespec t = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
    OFFLINE();
    nanosleep(&t, NULL);
    ONLINE();
}

static unsigned char mark_of(size_t bytes) { return (unsigned char)(bytes * 7 + 1); }

static void end_one(size_t victim) {
    struct value* const v = &values[victim];
    const unsigned char* const at = AT(v->home);
    if (at[0] != mark_of(v->bytes) || at[v->bytes - 1] != mark_of(v->bytes)) ++wrong;
    FREE(v->home);
    live_bytes -= v->bytes;
    *v = values[--live];
}

static void begin_one(size_t bytes) {
    while (live != 0 && (live == room || live_bytes + bytes > bound)) end_one(next() % live);
    unsigned char* const home = ALLOCATE(bytes);
    if (home == NULL) {
        fputs("churn: no memory\n", stderr);
        exit(1);
    }
    memset(AT(home), mark_of(bytes), bytes);
    values[live].home = home;
    values[live].bytes = bytes;
    if (++live > most_live) most_live = live;
    live_bytes += bytes;
}

static void print_hour(const char* before) {
    double tables = 0;
#ifdef LOAD_OF_HANDLES
    struct obase_handles_figures f;
    obase_handles_read_figures(&f);
    tables = (double)f.table_memory_bytes / 1048576;
#endif
    printf("%s{\"live_mib\": %.2f, \"rss_mib\": %.2f, \"tables_mib\": %.3f, \"page_tables_mib\": "
           "%.3f}",
           before, (double)live_bytes / 1048576,
           memory_mib("/proc/self/status", "VmRSS:") -
               (double)(most_live * sizeof *values) / 1048576,
           tables, memory_mib("/proc/self/status", "VmPTE:"));
}

int main(int argc, char** argv) {
    const size_t scale = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;
    const size_t hours = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
    const double seconds = argc == 4 ? atof(argv[3]) : 0;
    if (scale == 0 || hours == 0 || !(seconds > 0)) {
        fprintf(stderr, "usage: %s SCALE HOURS SECONDS\n", argv[0]);
        return 2;
    }
    const unsigned long mark = (unsigned long)ENTER();
    bound = ((size_t)100 << 20) / scale;
    room = bound / 16;
    values = malloc(room * sizeof *values);
    if (values == NULL) return 1;
    const double begin = now();
    printf("{\"hours\": [");
    for (size_t hour = 0; hour < hours; ++hour) {
        const size_t most = 2 * mean_bytes[hour % kinds];
        size_t born = 0, count = 0;
        while (born < turnovers * bound) {
            const size_t bytes = 16 + next() % most;
            begin_one(bytes);
            born += bytes;
            POLL();
            if (++count % values_in_a_step == 0)
                wait_until(begin +
                           seconds * ((double)hour + (double)born / (double)(turnovers * bound)));
        }
        wait_until(begin + seconds * (double)(hour + 1));
        print_hour(hour == 0 ? "" : ", ");
    }
    unsigned long moved = 0;
    double share = 0;
#ifdef LOAD_OF_HANDLES
    struct obase_handles_figures f;
    obase_handles_read_figures(&f);
    moved = f.moved;
    share = (double)f.collector_ns * 1e-9 / (now() - begin);
#endif
    while (live != 0) end_one(live - 1);
    printf("], \"moved\": %lu, \"cpu_share\": %.3f, \"wrong\": %zu}\n", moved, share, wrong);
    LEAVE(mark);
    return 0; /* whoever reads it looks at "wrong" */
}
