// SPDX-License-Identifier: MIT
// RUN: %accept
// A variable holds the address of a managed object in one member; what another member holds is free.
#include "marks.h"
struct event { char* subject; void* payload; };
struct message { void* payload OBASE_GUIDED; char* subject; };
int message_filter(struct message* m, int (*filter)(struct event*)) {
    struct event e = {m->subject, m->payload};
    const int done = filter(&e);
    m->subject = e.subject;
    return done;
}
