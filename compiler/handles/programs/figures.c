/* SPDX-License-Identifier: MIT
 *
 * Linked into the programs of `obase bench handles` and `obase bench fragmentation`, and compiled without handles: what
 * the runtime counted goes to a file when the process ends, and in the state "away" a thread moves everything.
 *
 *     OBASE_BENCH_FIGURES=FILE     the figures of obase/handles.h, as JSON, when the process exits
 *     OBASE_BENCH_MOVE_ALL_MS=N    all movable objects move, every N ms. The thread's processor time is among the
 *                                  figures, so that whoever asks what translations cost can take it off
 */
#define _GNU_SOURCE
#include <obase/handles.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_t mover;
static useconds_t pause_us; /* 0: there is no mover */

static void* move_all(void* nothing) {
    for (;;) {
        usleep(pause_us);
        obase_handles_move_all();
    }
    return nothing;
}

__attribute__((constructor)) static void begin(void) {
    const char* const every = getenv("OBASE_BENCH_MOVE_ALL_MS");
    const long ms = every == NULL ? 0 : atol(every);
    if (ms <= 0) return;
    pause_us = (useconds_t)ms * 1000;
    if (pthread_create(&mover, NULL, move_all, NULL) != 0) {
        fputs("OBASE_BENCH_MOVE_ALL_MS: no thread\n", stderr);
        _exit(1);
    }
}

static unsigned long long time_of_mover(void) {
    clockid_t clock;
    struct timespec t;
    if (pause_us == 0 || pthread_getcpuclockid(mover, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return 0;
    return (unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec;
}

__attribute__((destructor)) static void end(void) {
    const char* const name = getenv("OBASE_BENCH_FIGURES");
    FILE* const file = name == NULL ? NULL : fopen(name, "w");
    if (file == NULL) return;
    struct obase_handles_figures f;
    obase_handles_read_figures(&f);
    fprintf(file,
            "{\"moved\": %llu, \"vetoed\": %llu, \"opened\": %llu, \"came_home\": %llu, "
            "\"live_bytes\": %llu, "
            "\"memory_bytes\": %llu, \"table_bytes\": %llu, \"collector_ns\": %llu, \"mover_ns\": "
            "%llu}\n",
            (unsigned long long)f.moved, (unsigned long long)f.vetoed, (unsigned long long)f.opened,
            (unsigned long long)f.came_home, (unsigned long long)f.live_bytes,
            (unsigned long long)f.memory_bytes, (unsigned long long)f.table_bytes,
            (unsigned long long)f.collector_ns, time_of_mover());
    fclose(file);
}
