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

#ifdef WITH_MAIN // run_corpus.py
#include <stdio.h>
#include <stdlib.h>
static struct message all;
static void set(void) {
    all.payload = calloc(1, 64);
    all.subject = "subject";
}
static int filter(struct event* e) { return e->subject[0] + *(char*)e->payload; }
int main(void) {
    set();
    printf("%d\n", message_filter(&all, filter));
    printf("%d %s\n", message_filter(&all, filter), all.subject);
}
#endif
