/* SPDX-License-Identifier: MIT
 *
 * What code that `obase-clang --handles` compiled asks of the runtime (libobase_handles.a), and what a C program may
 * ask by hand. docs/handles.md is the manual.
 *
 * Words. *home*: the address at which an object was born. It is what the program's pointers hold, and stays the
 * object's name until it is freed. *translation*: the address at which the object's bytes are now. *run*: 64 KiB in
 * which homes of one block size lie. *poll*: a safepoint. A translation is good until the thread's next poll.
 *
 * An access as the compiler makes it:
 *
 *     char* at = home;
 *     if (obase_handles_away[(uintptr_t)home >> 16 & 0xFFFFFF]) at = obase_handles_translate(home);
 *     use(*at);
 *
 * A C program by hand, without the compiler:
 *
 *     unsigned long mark = obase_handles_enter();       // from here on this thread may translate
 *     struct node* home = obase_handles_malloc(sizeof *home);
 *     ((struct node*)obase_handles_address(home))->value = 1;
 *     if (obase_handles_poll_wanted) obase_handles_poll();
 *     obase_handles_free(home);
 *     obase_handles_leave(mark);
 *
 * Threads: any. Functions marked (s) may be called in signal handlers.
 */
#ifndef OBASE_HANDLES_H
#define OBASE_HANDLES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* instrumented libraries use the program's */

/* The functions that compiled code calls in the midst of its own keep all general registers but rax and r11. */
#if defined(__clang__)
#define OBASE_HANDLES_PRESERVE __attribute__((preserve_most))
#else
#define OBASE_HANDLES_PRESERVE /* g++ 12 does not know it; to take more as lost is right, too */
#endif

/* One byte per 64 KiB, indexed by bits 16..39 of any pattern of 64 bits. 0: what was born there is where it was born.
   Addresses that are equal modulo 1 TiB share a byte. The heap's reservation is shorter, so that its runs never do;
   what else shares one goes through obase_handles_translate(), which answers rightly. */
extern unsigned char obase_handles_away[1U << 24];

/* (s) Where the byte at `home` is now; `home` itself if it is in no object that was moved, whatever it is. Never fails. */
OBASE_HANDLES_PRESERVE void* obase_handles_translate(const void* home);

/* Nonzero: the thread is to call obase_handles_poll(). */
extern unsigned char obase_handles_poll_wanted;
/* (s) In a signal handler that interrupted translated code it does nothing. */
OBASE_HANDLES_PRESERVE void obase_handles_poll(void);

/* (s) Around a call of foreign code that is given no translation. In pairs; they nest. */
void obase_handles_offline(void);
void obase_handles_online(void);

/* (s) Around a function that foreign code calls: main, a thread's function, a comparison of qsort, a signal handler.
   leave() gets what enter() returned. enter() sets the thread's %gs: compiled code finds obase_handles_away there. */
unsigned long obase_handles_enter(void);
void obase_handles_leave(unsigned long mark);

/* For setjmp: the thread's state, and back to it. What was entered, pinned or taken offline in frames that a jump has
   left is given up. jump_restore() is a safepoint. */
unsigned long obase_handles_jump_save(void);
void obase_handles_jump_restore(unsigned long state);

/* A home goes to foreign code that may keep it: the object comes home, and stays there until it is freed. Returns the
   home. A safepoint: it may poll, and wait for the other threads to poll. */
void* obase_handles_keep(const void* home);

/* For foreign calls that block with translated arguments. The object does not move between pin and unpin; they nest.
   pin() returns the translation, good until unpin(): the home, but in handlers and in what is called back. A safepoint,
   as keep(): what was translated before it and not pinned is no longer good. */
void* obase_handles_pin(const void* home);
void obase_handles_unpin(const void* home);

/* The home of the byte at a current address; the address itself if no moved object is there. Slow: it searches. */
void* obase_handles_home(const void* address);

/* Objects that may move. malloc, free and the others of the C library are defined beside them: what those allocate
   never moves, and free() and realloc() take either. Errors as the C library's. */
void* obase_handles_malloc(size_t bytes);
void* obase_handles_calloc(size_t count, size_t bytes);
void* obase_handles_realloc(void* home, size_t bytes);
void* obase_handles_reallocarray(void* home, size_t count, size_t bytes);
void* obase_handles_aligned_alloc(size_t alignment, size_t bytes);
int obase_handles_posix_memalign(void** to, size_t alignment, size_t bytes);
void* obase_handles_memalign(size_t alignment, size_t bytes);
char* obase_handles_strdup(const char* text);                  /* the text by its home */
char* obase_handles_strndup(const char* text, size_t longest); /* likewise */
size_t obase_handles_malloc_usable_size(const void* home);
void obase_handles_free(void* home);

/* For tests and tools: opens the runs of all movable objects and moves what can be moved now, from a thread that is
   at a safepoint. Returns how many objects it moved. come_home() brings all back. */
unsigned long obase_handles_move_all(void);
unsigned long obase_handles_come_home(void);

/* A snapshot; figures since the start of the process. */
struct obase_handles_figures {
    uint64_t moved;    /* objects, from their homes */
    uint64_t vetoed;   /* objects that were in use when they should have moved, each time counted */
    uint64_t opened;   /* runs whose memory went away */
    uint64_t reopened; /* runs that should have been, and were in use */
    uint64_t came_home;          /* objects */
    uint64_t open_runs;          /* now */
    uint64_t live_bytes;         /* of movable objects now, in blocks and in dense copies */
    uint64_t memory_bytes;       /* under them */
    uint64_t table_bytes;        /* of forwarding */
    uint64_t table_memory_bytes; /* those, what is to be freed, and gaps between them */
    uint64_t foreign_faults;     /* accesses by code that was not compiled for handles */
    uint64_t collector_ns;       /* of processor time */
    uint64_t used_home;          /* runs that came home because they were used too often */
    /* Temperature, with OBASE_MODE; else 0. */
    uint64_t windows;           /* that have ended */
    uint64_t tracked_runs;      /* now */
    uint64_t tracked_ever;      /* each turn counted */
    uint64_t tracked_uses;      /* slow translations in tracked runs, about */
    uint64_t translation_ns;    /* what a slow one takes, as measured */
    uint64_t hot_bytes;         /* live now, in tiers that objects are promoted to */
    uint64_t cold_bytes;        /* likewise, in the other tiers */
    uint64_t left_bytes;        /* that left memory by the backend's hints, each time counted */
    uint64_t would_leave_bytes; /* in mode observe: that were cold in runs whose turn has ended */
};
void obase_handles_read_figures(struct obase_handles_figures* to);

/* An access by hand: what the compiler makes of a dereference. */
static inline void* obase_handles_address(const void* home) {
    return obase_handles_away[(uintptr_t)home >> 16 & 0xFFFFFFU] != 0
               ? obase_handles_translate(home)
               : (void*)home;
}

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
