/* SPDX-License-Identifier: MIT
 *
 * What the loads of `obase bench fragmentation` share: a clock, numbers at random that are the same in each run, and what
 * the kernel says of the process' memory.
 */
#ifndef OBASE_TOOLS_FRAGMENTATION_LOAD_PARTS_H
#define OBASE_TOOLS_FRAGMENTATION_LOAD_PARTS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Seconds. */
static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Of one thread. */
static inline uint64_t next(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* A line of /proc/self/FILE that is in kB; 0 without it. */
static inline double memory_mib(const char* file, const char* name) {
    FILE* const f = fopen(file, "r");
    char line[256];
    double kib = 0;
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, name, strlen(name)) == 0) kib = atof(line + strlen(name));
    if (f != NULL) fclose(f);
    return kib / 1024;
}

#endif
