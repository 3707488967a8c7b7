// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
// A variable holds the address of a managed object in one member, which is stored elsewhere.
#include "marks.h"
struct event { char* subject; void* payload; };
struct message { void* payload OBASE_GUIDED; char* subject; };
int message_filter(struct message* m, int (*filter)(struct event*)) {
    struct event e = {m->subject, m->payload};
    const int done = filter(&e);
    m->subject = e.payload;
    return done;
}
// CHECK: error: {{.*}}an operation stores the address of a managed object into its caller's memory
