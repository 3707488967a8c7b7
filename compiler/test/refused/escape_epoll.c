// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
// The address is in a variable; the kernel keeps what that holds.
#include "marks.h"
#include <sys/epoll.h>
struct connection { int file; };
struct server { struct connection* first OBASE_GUIDED; };
int watch(struct server* s, int epoll) {
    struct epoll_event event = {0};
    event.events = EPOLLIN;
    event.data.ptr = s->first;
    // CHECK: error: {{.*}}handed to epoll_ctl, which keeps it
    return epoll_ctl(epoll, EPOLL_CTL_ADD, s->first->file, &event);
}
