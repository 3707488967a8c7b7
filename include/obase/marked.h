/* SPDX-License-Identifier: MIT
 *
 * Marked pointers: fields that the compiler passes turn into guides, and the functions which the
 * passes put in the place of their loads and stores.
 *
 *     struct node {
 *         node* next OBASE_GUIDED;
 *         int key;
 *     };
 *
 * What a mark means: the field is a slot. It holds null, or the word of a managed object
 * (obase/word/arming.hpp), or the address of something that obase does not manage, a sentinel or
 * memory of malloc, which stays as it is. A field becomes known to the collector when a managed
 * address is stored into it, and is forgotten when its memory ends (obase_marked_forget).
 *
 * The rules for the program:
 *   1. Each managed object belongs into one marked field. An operation (an outermost scope) that
 *      stores an address which it has found in another field takes it out of one of the two before it
 *      ends: unlink, relink, rotate. None leaves a freed object in a field, and where others read
 *      without a lock an object is freed after it was taken out of every field they can reach.
 *   2. Such a second field may take over an address for good, but it may not show it for a while and
 *      give it up again, with the first field keeping it, if another thread can load it there
 *      meanwhile.
 *   3. An address from a marked field is good inside the scope in which it was loaded; that of a new
 *      object, until the operation ends that first stores it.
 * Why this is safe, and why 2 is needed: docs/protocol.md.
 *
 * In new C++ code obase::guide is better: it needs no compiler plugin, and rule 1 cannot be broken.
 *
 * Protocol: arming; the functions of the same names with obase_marked_atc_ are those of atc. The rules
 * are the same for both.
 *
 * Threads: every function by any thread, as std::atomic<void*>, but for obase_marked_forget and the
 * functions that free, after which no thread may use the memory any more. Not for signal handlers.
 * Errors: none of the functions fails because of obase; where it has no memory, objects come from
 * malloc or operator new and stay where they are.
 * Cost: given at each function; a call is included.
 */
#ifndef OBASE_MARKED_H
#define OBASE_MARKED_H

#include <obase/export.hpp>

#include <stddef.h>
#include <stdint.h>

/* OBASE_GUIDED marks a field. OBASE_ENTRY and OBASE_INTERNAL say of a function, where the front end
 * does not know better, that it is an operation, with a scope of its own, or a part of operations,
 * which is called in a scope. Other compilers than clang see plain pointers. */
#if defined(__clang__)
#define OBASE_GUIDED __attribute__((annotate("obase::guided")))
#define OBASE_ENTRY __attribute__((annotate("obase::entry")))
#define OBASE_INTERNAL __attribute__((annotate("obase::internal")))
#else
#define OBASE_GUIDED
#define OBASE_ENTRY
#define OBASE_INTERNAL
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* An operation; nests. Returns what leave must be given. Cost: a few nanoseconds. */
OBASE_EXPORT uint64_t obase_marked_enter(void);
OBASE_EXPORT void obase_marked_leave(uint64_t outer);

/* The address in *slot, valid in the scope. Counts as an access. The passes test the word's sign
 * first and call this only if it is negative. Cost: a compare-exchange on the first access in a
 * window. */
OBASE_EXPORT void* obase_marked_load(void** slot);

/* *slot = address, release. Does not count as an access. *slot may be memory that was never written
 * before. A managed address must be that of an object's first byte. Cost: a store; three dependent
 * loads if the address is managed; two atomic read-modify-writes once per slot. */
OBASE_EXPORT void obase_marked_store(void** slot, void* address);

/* The same in one atomic step, seq_cst; returns the address that was there. */
OBASE_EXPORT void* obase_marked_exchange(void** slot, void* address);

/* Nonzero: *slot held *expected and holds `desired` now. Zero: *expected is the address in *slot, an
 * access. Tag bits in the word are ignored. Strong, seq_cst. Precondition: inside a scope. */
OBASE_EXPORT int obase_marked_compare_exchange(void** slot, void** expected, void* desired);

/* Memory for an object that marked fields will hold: malloc, calloc, aligned_alloc, operator new,
 * with their alignments, results and errors (new calls the new handler and throws std::bad_alloc,
 * where it is not the nothrow form). Managed, but from the function named where the heaps have no
 * room. Cost: as obase_alloc. */
OBASE_EXPORT void* obase_marked_malloc(size_t bytes);
OBASE_EXPORT void* obase_marked_calloc(size_t count, size_t bytes);
OBASE_EXPORT void* obase_marked_aligned_alloc(size_t alignment, size_t bytes);
OBASE_EXPORT void* obase_marked_new(size_t bytes);
OBASE_EXPORT void* obase_marked_new_nothrow(size_t bytes);
OBASE_EXPORT void* obase_marked_new_aligned(size_t bytes, size_t alignment);
OBASE_EXPORT void* obase_marked_new_array(size_t bytes);

/* free, operator delete and operator delete[] for memory of any origin. The slots inside end. A
 * managed object, memory in the place of one, and other memory that has slots in it or had some
 * (obase_marked_destroyed), is freed when no scope that is open now can hold its address; the rest at
 * once. `bytes` and `alignment` are 0 where the program did not say.
 * Cost: of unmanaged memory without slots, a few nanoseconds more than the function named. */
OBASE_EXPORT void obase_marked_free(void* address);
OBASE_EXPORT void obase_marked_delete(void* address, size_t bytes, size_t alignment);
OBASE_EXPORT void obase_marked_delete_array(void* address, size_t bytes, size_t alignment);

/* realloc for memory of any origin: slots inside go along, and a managed object stays managed. No
 * other thread uses the memory. */
OBASE_EXPORT void* obase_marked_realloc(void* address, size_t bytes);
OBASE_EXPORT void* obase_marked_reallocarray(void* address, size_t count, size_t bytes);
/* malloc_usable_size for memory of any origin. */
OBASE_EXPORT size_t obase_marked_usable_size(const void* address);
/* munmap. The slots inside end before. */
OBASE_EXPORT int obase_marked_munmap(void* begin, size_t bytes);

/* The slots in [begin, begin + bytes) end, what they hold is not freed: for a frame that is left, memory
 * that is cleared, a mapping that goes. Afterwards the collector does not touch the memory. Cost: a load
 * or a few dependent ones where there are no slots, else one atomic read-modify-write per 512 bytes;
 * waits out a visit of the collector that is under way. */
OBASE_EXPORT void obase_marked_forget(void* begin, size_t bytes);
/* The same for an object with marked fields that was destroyed, in memory that may be freed later, which
 * will then wait for the scopes that are open, even if no field has ever held a managed address. Cost:
 * twice that of forget where the object is not managed. */
OBASE_EXPORT void obase_marked_destroyed(void* object, size_t bytes);
/* The same for the calling thread's whole stack, which is about to end without its frames being left:
 * before pthread_exit in C. Cost: some microseconds. */
OBASE_EXPORT void obase_marked_thread_ends(void);

/* Around a setjmp outside of operations: `depth` before it, `returned` when longjmp has come back to it, with
 * what depth has returned. An operation that was begun in between, and that nobody will leave, ends. Cost: a load. */
OBASE_EXPORT uint64_t obase_marked_depth(void);
OBASE_EXPORT void obase_marked_returned(uint64_t depth);

/* The same on the ATC protocol (obase/atc.hpp), for programs that were compiled with
 * --obase-protocol=atc. They have a runtime of their own, obase::runtime::of<obase::atc>(), and share
 * neither objects nor slots with those above. Cost: a store of anything, null included, is an atomic
 * read-modify-write. */
OBASE_EXPORT uint64_t obase_marked_atc_enter(void);
OBASE_EXPORT void obase_marked_atc_leave(uint64_t outer);
OBASE_EXPORT void* obase_marked_atc_load(void** slot);
OBASE_EXPORT void obase_marked_atc_store(void** slot, void* address);
OBASE_EXPORT void* obase_marked_atc_exchange(void** slot, void* address);
OBASE_EXPORT int obase_marked_atc_compare_exchange(void** slot, void** expected, void* desired);
OBASE_EXPORT void* obase_marked_atc_malloc(size_t bytes);
OBASE_EXPORT void* obase_marked_atc_calloc(size_t count, size_t bytes);
OBASE_EXPORT void* obase_marked_atc_aligned_alloc(size_t alignment, size_t bytes);
OBASE_EXPORT void* obase_marked_atc_new(size_t bytes);
OBASE_EXPORT void* obase_marked_atc_new_nothrow(size_t bytes);
OBASE_EXPORT void* obase_marked_atc_new_aligned(size_t bytes, size_t alignment);
OBASE_EXPORT void* obase_marked_atc_new_array(size_t bytes);
OBASE_EXPORT void obase_marked_atc_free(void* address);
OBASE_EXPORT void obase_marked_atc_delete(void* address, size_t bytes, size_t alignment);
OBASE_EXPORT void obase_marked_atc_delete_array(void* address, size_t bytes, size_t alignment);
OBASE_EXPORT void* obase_marked_atc_realloc(void* address, size_t bytes);
OBASE_EXPORT void* obase_marked_atc_reallocarray(void* address, size_t count, size_t bytes);
OBASE_EXPORT size_t obase_marked_atc_usable_size(const void* address);
OBASE_EXPORT int obase_marked_atc_munmap(void* begin, size_t bytes);
OBASE_EXPORT uint64_t obase_marked_atc_depth(void);
OBASE_EXPORT void obase_marked_atc_returned(uint64_t depth);
OBASE_EXPORT void obase_marked_atc_forget(void* begin, size_t bytes);
OBASE_EXPORT void obase_marked_atc_destroyed(void* object, size_t bytes);
OBASE_EXPORT void obase_marked_atc_thread_ends(void);

/* What a translation unit calls before its own constructors, if the passes compiled it or it includes
 * obase/marked_access.h: all of a program must be of one protocol, since each takes the words of the
 * other for something else. The second protocol ends the process with a message and status 1. `unit`
 * is named in it. */
OBASE_EXPORT void obase_marked_unit(const char* protocol, const char* unit);
/* The same of a unit that was compiled with -fsanitize=thread: a library that was not ends the process,
 * because the sanitizer would not see how its threads wait, and report each move. */
OBASE_EXPORT void obase_marked_unit_thread_sanitized(const char* unit);

/* For the functions that the drivers link into a program (compiler/driver/memory_functions.c), which are called
 * in the place of free and realloc by code that knows nothing of obase: libraries, and calls through pointers.
 * `owner`: not 0 if the memory, not null, is managed, or has or had slots in it; what the others are given then.
 * `usable_size` is that of memory that is not managed. `caller` is for the audit's report. `managed_size`: 0 if the
 * memory is not managed. Cost of `owner`: a few loads, a scope where slots are within 16 MiB. */
OBASE_EXPORT int obase_memory_owner(const void* address, size_t (*usable_size)(void*));
OBASE_EXPORT void obase_memory_free(int owner, void* address, const void* caller);
OBASE_EXPORT void* obase_memory_realloc(int owner, void* address, size_t bytes, const void* caller);
OBASE_EXPORT size_t obase_memory_managed_size(const void* address);

#ifdef __cplusplus
}
#endif

#endif
