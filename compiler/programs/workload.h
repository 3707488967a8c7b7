/* SPDX-License-Identifier: MIT
 *
 * What the workloads of small libraries say on stdout, in a line after each second: seconds, calls, and KiB in memory,
 * anonymous and of files. And numbers that look random, the same in each run. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t mixed(uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void say_memory(double second, uint64_t calls) {
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
    printf("%.1f %llu %ld %ld\n", second, (unsigned long long)calls, anonymous, file + shared);
    fflush(stdout);
}
