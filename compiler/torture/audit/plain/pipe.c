/* SPDX-License-Identifier: MIT */
#include <unistd.h>
static int ends[2];
void send(const void* p) {
    if (pipe(ends) != 0 || write(ends[1], &p, sizeof p) != sizeof p) _exit(9);
}
const void* receive(void) {
    const void* p;
    if (read(ends[0], &p, sizeof p) != sizeof p) _exit(9);
    return p;
}
