/* SPDX-License-Identifier: MIT
 *
 * A program with a handler of its own for segmentation faults, set after the audit's.
 *
 * STATUS: 42
 * EXPECT: the program's handler
 * FORBID: stale-use
 */
#define _GNU_SOURCE
#include "list.h"

#include <signal.h>
#include <unistd.h>

static void on_fault(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    static const char text[] = "the program's handler\n";
    if (write(2, text, sizeof text - 1) < 0) _exit(1);
    _exit(info->si_addr == (void*)16 ? 42 : 43);
}

int main(void) {
    struct sigaction own = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &own, NULL);
    fill();
    printf("%ld\n", sum(&all));
    fflush(stdout);
    *(volatile int*)16 = 1;
}
