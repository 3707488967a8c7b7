/* SPDX-License-Identifier: MIT
 *
 * What the workloads of small libraries have in common. Each is called
 *
 *     workload [FILE] COUNT SECONDS      makes COUNT of something, then asks for one of it again and again, for so long,
 *                                        and says on stdout, in a line at first and one after each second: seconds,
 *                                        calls, and KiB in memory, anonymous and of files
 *     workload [FILE] COUNT - CALLS      asks so often, each in turn, and says nothing
 *
 *     struct pace pace = pace_of(argc, argv, "KEYS");
 *     ... make pace.count keys ...
 *     begin(&pace);
 *     for (uint64_t call; next_call(&pace, &call);) ask_for(asked_for(&pace, call));
 *
 * One in ten gets all calls but one in ten thousand, which is of any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A number that looks random, the same in each run. */
static inline uint64_t mixed(uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Ends the program with a message that begins with its name. */
#define give_up(...) (fprintf(stderr, "workload: " __VA_ARGS__), fputc('\n', stderr), exit(1))

struct pace {
    uint64_t count;
    bool timed;
    double seconds;      /* if timed */
    uint64_t most_calls; /* if not */
    uint64_t calls;
    double began, next; /* when, and the second of the next line */
};

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

/* Of the last arguments. `what` says what COUNT counts; with a file before it, "FILE RECORDS". */
static inline struct pace pace_of(int argc, char** argv, const char* what) {
    const int first = strchr(what, ' ') != NULL ? 2 : 1;
    struct pace p = {0};
    if (argc == first + 2) {
        p.timed = true;
        p.seconds = strtod(argv[first + 1], NULL);
    } else if (argc == first + 3 && strcmp(argv[first + 1], "-") == 0) {
        p.most_calls = strtoull(argv[first + 2], NULL, 10);
    } else {
        fprintf(stderr, "usage: workload %s SECONDS, or workload %s - CALLS\n", what, what);
        exit(2);
    }
    p.count = strtoull(argv[first], NULL, 10);
    return p;
}

/* All is made. */
static inline void begin(struct pace* p) {
    p->began = now();
    p->next = 1;
    if (p->timed) say_memory(0, 0);
}

/* False when it is over, else the call's number. Looks at the clock at every hundredth. */
static inline bool next_call(struct pace* p, uint64_t* call) {
    if (!p->timed && p->calls == p->most_calls) return false;
    if (p->timed && p->calls % 100 == 0) {
        const double second = now() - p->began;
        if (second >= p->next) {
            say_memory(second, p->calls);
            ++p->next;
        }
        if (second >= p->seconds) return false;
    }
    *call = p->calls++;
    return true;
}

/* Which one a call is for. Hot ones lie anywhere. */
static inline uint64_t asked_for(const struct pace* p, uint64_t call) {
    if (!p->timed) return call % p->count;
    const uint64_t random = mixed(call + p->count), one = random >> 16;
    return random % 10000 == 0 ? mixed(one) % p->count
                               : mixed(one % (p->count / 10 + 1)) % p->count;
}
