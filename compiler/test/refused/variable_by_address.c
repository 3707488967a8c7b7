// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse
// The same variable, written through an address of it that is in memory.
#include "marks.h"
struct event { char* subject; void* payload; };
struct event_list { struct event* first; };
struct message { void* payload OBASE_GUIDED; char* subject; };
int message_filter(struct message* m, int (*filter)(struct event_list*)) {
    struct event e = {m->subject, m->payload};
    struct event_list all = {&e};
    const int done = filter(&all);
    all.first->subject = m->payload;
    m->subject = e.subject;
    return done;
}
// CHECK: error: {{.*}}an operation stores the address of a managed object into its caller's memory
