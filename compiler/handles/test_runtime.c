// SPDX-License-Identifier: MIT
//
// A runtime for tests of the pass alone: every object has pages of its own for a home.
//
//     HANDLES_TEST=home     nothing moves
//     HANDLES_TEST=away     every object is away from birth, its home inaccessible, and moves at every poll
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <malloc.h>

#define API __attribute__((visibility("default")))
API unsigned char obase_handles_away[1U << 24];
API unsigned char obase_handles_poll_wanted;

enum { page = 4096, most = 1 << 24 };
static char* region; // of most pages
struct object { void* now; size_t size; uint32_t first; uint32_t pages; char kept; };
static struct object* objects; // by page
static uint32_t next = 16;
static int away, threads;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int online_depth;
static uint32_t live_list_cursor = 16;

__attribute__((constructor(101))) static void start(void) {
    const char* mode = getenv("HANDLES_TEST");
    away = mode != NULL && strcmp(mode, "away") == 0;
    region = mmap((void*)0x100000000000, (size_t)most * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    objects = mmap(NULL, sizeof *objects * most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (away) {
        for (size_t i = 0; i < (size_t)most * page >> 16; ++i)
            obase_handles_away[((uintptr_t)region >> 16) + i & 0xFFFFFF] = 1;
        obase_handles_poll_wanted = 1;
    }
}
static struct object* find(const void* p) {
    if (region == NULL || (char*)p < region || (char*)p >= region + (size_t)most * page) return NULL;
    struct object* o = &objects[((char*)p - region) / page];
    if (o->pages == 0) return NULL;
    return &objects[o->first];
}
static char* home_of(struct object* o) { return region + (size_t)o->first * page; }
API __attribute__((preserve_most)) void* obase_handles_translate(const void* home) {
    struct object* o = find(home);
    if (o == NULL || o->now == NULL) return (void*)home;
    return (char*)o->now + ((char*)home - home_of(o));
}
static void move(struct object* o) {
    void* to = malloc(o->size + 1);
    memcpy(to, o->now, o->size);
    memset(o->now, 0xDB, o->size);
    free(o->now);
    o->now = to;
}
static char pinned[most];
API __attribute__((preserve_most)) void obase_handles_poll(void) {
    if (!away || threads != 1) return;
    const int error = errno;
    for (int i = 0; i < 3; ++i) {
        uint32_t at = live_list_cursor++;
        if (live_list_cursor >= next) live_list_cursor = 16;
        struct object* o = &objects[at];
        if (o->pages && o->first == at && o->now && !o->kept && !pinned[at]) move(o);
    }
    // and the young ones
    for (uint32_t at = next > 40 ? next - 20 : 16; at < next; ++at) {
        struct object* o = &objects[at];
        if (o->pages && o->first == at && o->now && !o->kept && !pinned[at] && o->size < 4096) move(o);
    }
    errno = error;
}
static __thread int registered;
API unsigned long obase_handles_enter(void) {
    if (!registered) { registered = 1; __atomic_add_fetch(&threads, 1, __ATOMIC_SEQ_CST); }
    const int was = online_depth;
    online_depth = 1;
    return was;
}
API void obase_handles_leave(unsigned long was) { online_depth = (int)was; }
API void obase_handles_offline(void) { online_depth--; }
API void obase_handles_online(void) {
    online_depth++;
    if (online_depth != 1) { fprintf(stderr, "online: depth %d\n", online_depth); abort(); }
    if (away) obase_handles_poll();
}
API unsigned long obase_handles_state(void) { return online_depth; }
API void obase_handles_restore(unsigned long s) { online_depth = (int)s; if (away) obase_handles_poll(); }
API void* obase_handles_keep(const void* home) {
    struct object* o = find(home);
    if (o == NULL || o->now == NULL) return (void*)home;
    mprotect(home_of(o), (size_t)o->pages * page, PROT_READ | PROT_WRITE);
    memcpy(home_of(o), o->now, o->size);
    memset(o->now, 0xDB, o->size);
    free(o->now);
    o->now = NULL;
    o->kept = 1;
    return (void*)home;
}
API void* obase_handles_pin(const void* home) {
    struct object* o = find(home);
    if (o) pinned[o->first]++;
    return obase_handles_translate(home);
}
API void obase_handles_unpin(const void* home) { struct object* o = find(home); if (o) pinned[o->first]--; }
API void* obase_handles_home(const void* p) { return (void*)p; }
API void* obase_handles_aligned_alloc(size_t alignment, size_t n) {
    (void)alignment;
    if (n > (size_t)most * page / 2) { errno = ENOMEM; return NULL; }
    pthread_mutex_lock(&lock);
    uint32_t pages = (uint32_t)((n + 1 + page - 1) / page);
    uint32_t first = next;
    next += pages;
    pthread_mutex_unlock(&lock);
    if (next >= most) { fprintf(stderr, "test runtime: full\n"); abort(); }
    struct object* o = &objects[first];
    o->size = n;
    if (away) {
        o->now = malloc(n + 1);
        memset(o->now, 0xCC, n);
    } else mprotect(region + (size_t)first * page, (size_t)pages * page, PROT_READ | PROT_WRITE);
    for (uint32_t i = 0; i < pages; ++i) objects[first + i].first = first, objects[first + i].pages = pages;
    return region + (size_t)first * page;
}
API void* obase_handles_malloc(size_t n) { return away ? obase_handles_aligned_alloc(16, n) : malloc(n); }
API void obase_handles_free(void* p) {
    struct object* o = find(p);
    if (o == NULL) { free(p); return; }
    if (p != home_of(o)) { fprintf(stderr, "free of no object\n"); abort(); }
    if (o->now) { memset(o->now, 0xDB, o->size); free(o->now); }
    else mprotect(home_of(o), (size_t)o->pages * page, PROT_NONE), madvise(home_of(o), (size_t)o->pages * page, MADV_DONTNEED);
    uint32_t pages = o->pages, first = o->first;
    for (uint32_t i = 0; i < pages; ++i) objects[first + i].pages = 0;
}
API void* obase_handles_calloc(size_t a, size_t b) {
    if (b && a > SIZE_MAX / b) { errno = ENOMEM; return NULL; }
    void* p = obase_handles_malloc(a * b);
    if (p) memset(obase_handles_translate(p), 0, a * b);
    return p;
}
API void* obase_handles_realloc(void* p, size_t n) {
    struct object* o = find(p);
    if (p && !o && !away) return realloc(p, n);
    if (p == NULL) return obase_handles_malloc(n);
    if (n == 0) { obase_handles_free(p); return NULL; }
    size_t old = o ? o->size : malloc_usable_size(p);
    void* q = obase_handles_malloc(n);
    if (q == NULL) return NULL;
    memcpy(obase_handles_translate(q), obase_handles_translate(p), old < n ? old : n);
    obase_handles_free(p);
    return q;
}
API void* obase_handles_reallocarray(void* p, size_t a, size_t b) { return obase_handles_realloc(p, a * b); }
API int obase_handles_posix_memalign(void** to, size_t al, size_t n) {
    void* p = away ? obase_handles_malloc(n) : aligned_alloc(al, (n + al - 1) / al * al);
    *(void**)obase_handles_translate(to) = p;
    return p ? 0 : ENOMEM;
}
API void* obase_handles_memalign(size_t al, size_t n) { return away ? obase_handles_malloc(n) : memalign(al, n); }
API void* obase_handles_valloc(size_t n) { return obase_handles_memalign(page, n); }
API size_t obase_handles_malloc_usable_size(const void* p) {
    struct object* o = find(p);
    return o ? o->size : malloc_usable_size((void*)p);
}
