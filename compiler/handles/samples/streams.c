// SPDX-License-Identifier: MIT
// Threads that wait for each other in streams: a lock of one, a pipe that the program reads itself. Meanwhile this one keeps
// objects, for which the others must not be in the way.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static FILE* locked;
static int ends[2];
static void* prints(void* unused) {
    (void)unused;
    char* text = strdup("text");
    for (int i = 0; i < 50; ++i) {
        fprintf(locked, "%s %d\n", text, i);
        fputs(text, locked);
        fflush(locked);
        putc('\n', locked);
    }
    return NULL;
}
static void* fills(void* unused) {
    (void)unused;
    FILE* to = fdopen(ends[1], "w");
    char* bytes = malloc(1000);
    memset(bytes, 'x', 1000);
    for (int i = 0; i < 100; ++i) {
        fwrite(bytes, 1, 1000, to);
        fflush(to);
    }
    for (int i = 0; i < 100; ++i) fprintf(to, "%1000s", bytes + 999);
    fclose(to);
    return NULL;
}
static long keep_some(void) {
    long sum = 0;
    for (int i = 0; i < 100; ++i) {
        char* text = strdup("abc");
        memfrob(text, 3); // not in the table
        sum += text[0];
        free(text);
    }
    return sum;
}
int main(void) {
    pthread_t thread;
    char* buffer = malloc(2000);
    locked = fopen("/dev/null", "w");
    flockfile(locked);
    pthread_create(&thread, NULL, prints, NULL);
    usleep(20000);
    long sum = keep_some();
    funlockfile(locked);
    pthread_join(thread, NULL);
    if (pipe(ends) != 0) return 1;
    pthread_create(&thread, NULL, fills, NULL);
    usleep(20000);
    sum += keep_some();
    long bytes = 0;
    for (;;) {
        long n = read(ends[0], buffer, 1500);
        if (n <= 0) break;
        bytes += n;
    }
    pthread_join(thread, NULL);
    printf("%ld %ld\n", sum, bytes); //> 15000 200000
    // What is written in turns keeps its order, whatever the stream's buffer is.
    int* number = malloc(sizeof *number);
    *number = 3;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("%d", *number); //> 3 and text
    fputs(" and ", stdout);
    puts(strdup("text"));
    char* large = malloc(6001);
    memset(large, 'y', 6000);
    large[6000] = 0;
    const int made = snprintf(NULL, 0, "%s", large);
    FILE* none = fopen("/dev/null", "w");
    setvbuf(none, NULL, _IONBF, 0);
    const int printed = fprintf(none, "%s%d", large, *number);
    const int put = fputs(large, none);
    printf("%d %d %d %d\n", made, printed, put >= 0,
           dprintf(fileno(none), "%s", large)); //> 6000 6001 1 6000
    fclose(none);
}
