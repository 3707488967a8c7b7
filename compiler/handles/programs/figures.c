/* SPDX-License-Identifier: MIT
 *
 * Linked into the programs of `obase bench handles` and `obase bench fragmentation`, and compiled without handles: what
 * the runtime counted goes to a file when the process ends, and in the state "away" a thread moves everything.
 *
 *     HANDLES_BENCH_FIGURES=FILE     the figures of obase/handles.h, as JSON, when the process exits
 *     HANDLES_BENCH_MOVE_ALL_MS=N    all movable objects move, every N ms. The thread's processor time is among the
 *                                    figures, so that whoever asks what translations cost can take it off
 *     HANDLES_BENCH_SPACE_GIB=N      before main, N GiB of address space are filled with objects that are not used, and a
 *                                    tenth of their runs is opened, unless OBASE_HANDLES=off: one object of each lives,
 *                                    and moves. "run_ns" is the process' time from then on, the mover's taken off
 */
#define _GNU_SOURCE
#include <obase/handles.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static unsigned long long began_ns; /* 0: no space was filled */

static unsigned long long process_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec;
}

/* Blocks of which a run has four. Those that are not freed are not written to, so they take address space alone. */
static void fill_space(unsigned long gib) {
    enum { block = 16383, blocks = 4, open_of = 10 };
    const unsigned long runs = gib << 14;
    const unsigned long mark = obase_handles_enter();
    unsigned long made = 0, missing = 0;
    char** const movable = malloc((runs / open_of + 1) * blocks * sizeof *movable);
    for (unsigned long run = 0; movable != NULL && run < runs; ++run) {
        for (int i = 0; i < blocks; ++i)
            if (run % open_of != 0)
                missing += malloc(block) == NULL;
            else if ((movable[made] = obase_handles_malloc(block)) != NULL)
                ++made;
            else
                ++missing;
        if (obase_handles_poll_wanted) obase_handles_poll();
    }
    for (unsigned long i = 0; i < made; ++i) {
        if (i % blocks != 0) obase_handles_free(movable[i]);
        if (obase_handles_poll_wanted) obase_handles_poll();
    }
    obase_handles_move_all();
    struct obase_handles_figures f;
    obase_handles_read_figures(&f);
    /* The heap must have room for the program itself: else it would get the C library's memory. */
    enum { more = 1 << 12 };
    const uint64_t before = f.live_bytes;
    for (int i = 0; i < more; ++i) missing += obase_handles_malloc(100) == NULL;
    obase_handles_read_figures(&f);
    if (movable == NULL || missing != 0 || f.live_bytes < before + 50 * more) {
        fputs("HANDLES_BENCH_SPACE_GIB: the heap has no room\n", stderr);
        _exit(1);
    }
    const char* const off = getenv("OBASE_HANDLES");
    if ((off == NULL || strcmp(off, "off") != 0) && f.open_runs < runs / open_of * 9 / 10) {
        fprintf(stderr, "HANDLES_BENCH_SPACE_GIB: %llu runs are open, of %lu\n",
                (unsigned long long)f.open_runs, runs);
        _exit(1);
    }
    free(movable);
    obase_handles_leave(mark);
    began_ns = process_ns();
}

__attribute__((constructor)) static void begin(void) {
    const char* const space = getenv("HANDLES_BENCH_SPACE_GIB");
    if (space != NULL && atol(space) > 0) fill_space((unsigned long)atol(space));
    const char* const every = getenv("HANDLES_BENCH_MOVE_ALL_MS");
    const long ms = every == NULL ? 0 : atol(every);
    if (ms <= 0) return;
    pause_us = (useconds_t)ms * 1000;
    if (pthread_create(&mover, NULL, move_all, NULL) != 0) {
        fputs("HANDLES_BENCH_MOVE_ALL_MS: no thread\n", stderr);
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
    const unsigned long long ended_ns = process_ns(), mover_ns = time_of_mover();
    const char* const name = getenv("HANDLES_BENCH_FIGURES");
    FILE* const file = name == NULL ? NULL : fopen(name, "w");
    if (file == NULL) return;
    struct obase_handles_figures f;
    obase_handles_read_figures(&f);
    fprintf(file,
            "{\"moved\": %llu, \"vetoed\": %llu, \"opened\": %llu, \"came_home\": %llu, "
            "\"live_bytes\": %llu, "
            "\"memory_bytes\": %llu, \"table_bytes\": %llu, \"collector_ns\": %llu, \"mover_ns\": "
            "%llu, \"open_runs\": %llu, \"run_ns\": %llu}\n",
            (unsigned long long)f.moved, (unsigned long long)f.vetoed, (unsigned long long)f.opened,
            (unsigned long long)f.came_home, (unsigned long long)f.live_bytes,
            (unsigned long long)f.memory_bytes, (unsigned long long)f.table_bytes,
            (unsigned long long)f.collector_ns, mover_ns, (unsigned long long)f.open_runs,
            began_ns == 0 ? 0 : ended_ns - began_ns - mover_ns);
    fclose(file);
}
