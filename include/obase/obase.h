/* SPDX-License-Identifier: MIT
 *
 * The C interface of obase. Guides, scopes, pins, retire and the runtime as plain functions, the
 * same ones that the C++ interface is made of; objects made by either may be used by both.
 *
 *     struct entry { obase_guide value; };
 *
 *     obase_guide_init(&e->value);
 *     char* text = obase_alloc(100, NULL);
 *     ...fill text...
 *     obase_free(obase_guide_exchange(&e->value, text));
 *
 *     uint64_t outer = obase_scope_enter();
 *     char* now = obase_guide_get(&e->value);      // good until the exit
 *     obase_scope_exit(outer);
 *
 *     obase_guide_destroy(&e->value);              // frees the object, too
 *
 * In C++, obase/obase.hpp ends scopes by itself.
 *
 * Errors: functions that allocate return NULL when there is no memory; functions that return int return
 * 0 for success. Threads: as in the C++ headers, to which each function refers by its name.
 */
#ifndef OBASE_OBASE_H
#define OBASE_OBASE_H

#include <obase/export.hpp>
#include <obase/version.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A guide: one word, registered at its address. Never copied by assignment or memcpy. */
typedef struct obase_guide {
    uint64_t word;
} obase_guide;

/* Objects that lie together, by a name in the program's own memory. Zero: no objects yet; when the last is
 * freed it is empty again. Never copied while in use. */
typedef struct obase_group {
    uint64_t name;
} obase_group;

/* How an object will be used, as far as the program knows. */
enum obase_expect { OBASE_EXPECT_NOTHING, OBASE_EXPECT_HOT, OBASE_EXPECT_COLD, OBASE_EXPECT_ONCE };

/* How an object is placed; NULL means {1}. See obase/allocation_options.hpp. */
typedef struct obase_allocation_options {
    size_t alignment; /* power of two up to 4096, 0 = 1 */
    int never_cold;   /* keep the object out of COLD */
    int expect;       /* enum obase_expect; other values are OBASE_EXPECT_NOTHING */
    const void*
        near; /* a live object of obase's, beside which to lie; NULL: none. One that is no such
                          object is ignored, and counted (statistics: near_missed) */
    obase_group* in; /* used instead of near, unless NULL */
    int guided; /* the caller will put the object into a guide: then one that is expected to be cold or hot, and
                        of which nothing else is said, is born where such objects lie. One that no guide ever holds
                        stays there. */
} obase_allocation_options;

/* An open pin. */
typedef struct obase_pin obase_pin;

/* Scopes; nestable, async-signal-safe once the thread has used obase. Returns what exit must be given. */
OBASE_EXPORT uint64_t obase_scope_enter(void);
OBASE_EXPORT void obase_scope_exit(uint64_t outer);

/* An object that no guide holds yet; it does not move. 16-byte aligned unless asked for less or more:
 * alignment below 16 in `how` allows denser packing. obase_free(NULL) is allowed. A free of what was freed
 * before, or of an address where no object begins, has no effect as far as it is found, and is counted
 * (statistics: invalid_frees); with OBASE_CHECK_FREES=1 it ends the program: docs/embedding.md. */
OBASE_EXPORT void* obase_alloc(size_t bytes, const obase_allocation_options* how);
OBASE_EXPORT void obase_free(void* object);
OBASE_EXPORT size_t obase_usable_size(const void* object);

/* Makes *guide a null guide and tells the runtime its address. */
OBASE_EXPORT void obase_guide_init(obase_guide* guide);
/* Ends the guide and frees its object. After it the memory of *guide may be reused or unmapped. */
OBASE_EXPORT void obase_guide_destroy(obase_guide* guide);
/* The object's address, NULL if none. Counts as an access. Precondition: inside a scope. */
OBASE_EXPORT void* obase_guide_get(obase_guide* guide);
/* Nonzero if the guide holds no object. Does not count as an access. */
OBASE_EXPORT int obase_guide_is_null(const obase_guide* guide);
/* Puts `object` (from obase_alloc, or taken out of a guide, or NULL) in and returns what was there, now
 * the caller's to free or retire. */
OBASE_EXPORT void* obase_guide_exchange(obase_guide* guide, void* object);
/* Nonzero: the guide held *expected (an address from obase_guide_get in this scope, or NULL) and holds
 * `desired` now; *expected is the caller's. Zero: *expected is the current address, which counts as
 * an access. Precondition: inside a scope. */
OBASE_EXPORT int obase_guide_compare_exchange(obase_guide* guide, void** expected, void* desired);
/* Moves the object of *from into *to, both initialised; frees what *to held. */
OBASE_EXPORT void obase_guide_move(obase_guide* to, obase_guide* from);
/* Ends all guides in a memory area that is dropped as a whole, without freeing their objects. */
OBASE_EXPORT void obase_forget_guides(void* begin, size_t bytes);

/* Keeps an object, by its address obtained in the open scope, where it is until obase_unpin. NULL: no
 * memory for a pin, or object is NULL. */
OBASE_EXPORT obase_pin* obase_pin_object(void* object);
OBASE_EXPORT void obase_unpin(obase_pin* pin);

/* Calls destroy(object), or frees it if destroy is NULL, when no scope or pin can hold the address. A
 * destroy function frees the object itself. */
OBASE_EXPORT void obase_retire(void* object, void (*destroy)(void* object));

/* The runtime. Names and values as in docs/options.md; the returned text says what is wrong, NULL is
 * success, and is freed with free(). */
OBASE_EXPORT char* obase_configure(const char* name, const char* value);
OBASE_EXPORT char* obase_start(void);
OBASE_EXPORT void obase_stop(void);

enum obase_mode { OBASE_MODE_OFF, OBASE_MODE_OBSERVE, OBASE_MODE_MOVE, OBASE_MODE_HINT };
OBASE_EXPORT void obase_set_mode(enum obase_mode mode);

/* 0 done, 1 the caller is in a scope, 2 not running, 3 abandoned; see obase::collect_result. */
OBASE_EXPORT int obase_collect_now(void);
/* Frees what was retired as far as possible; returns how many objects. */
OBASE_EXPORT uint64_t obase_reclaim_now(void);
/* Frees everything retired before the call, waiting at most `seconds` for scopes, pins and destroy functions
 * of other threads; before a library is unloaded whose functions are destroy functions. 0: done. Otherwise
 * objects are left, how many is in *left (may be NULL): 1 the caller is in a scope, 2 in a destroy function,
 * 3 a scope of another thread is open, 4 a pin, 5 a destroy function of another thread runs, 6 destroy
 * functions retire more and more, 7 membarrier fails, 8 no memory, 9 a thread had no memory for its record;
 * see obase::drain_end. */
OBASE_EXPORT int obase_drain(double seconds, uint64_t* left);

/* Statistics of the last window, text freed with free(); NULL without memory. */
OBASE_EXPORT char* obase_statistics_json(void);
OBASE_EXPORT char* obase_statistics_prometheus(void);
/* One line for each thing that cannot work on this machine; "" if there is none. Freed with free().
 * */
OBASE_EXPORT char* obase_self_check(void);

#ifdef __cplusplus
}
#endif

#endif
