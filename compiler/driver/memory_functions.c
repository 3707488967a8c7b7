/* SPDX-License-Identifier: MIT
 *
 * free, realloc, reallocarray and malloc_usable_size of a program that obase-clang has linked. They know managed
 * memory, and memory with slots in it, whoever calls them: a library, getline, a pointer to a function. All else
 * goes to the function that would have been called without them, malloc's of the C library or of another one.
 *
 * operator delete needs none of its own: that of the C++ library calls free, in all its forms.
 *
 * Weak: a program that defines them itself, or links an allocator that does, keeps those, which know nothing of
 * managed memory.
 *
 * Not linked with a static C library, whose malloc brings its own free along, nor with a sanitizer that replaces both.
 *
 * Threads: any. Cost: a call and a few loads more than free.
 */
#define _GNU_SOURCE
#include <obase/marked.h>

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

/* The C library's own, while dlsym is at work, which may free. */
extern void __libc_free(void*);
extern void* __libc_realloc(void*, size_t);

static void (*next_free)(void*);
static void* (*next_realloc)(void*, size_t);
static size_t (*next_usable_size)(void*);

/* obase frees by the same names what is malloc's. */
static __thread int in_obase;

#define OBASE_FIND_NEXT(pointer, name) (*(void**)(&pointer) = dlsym(RTLD_NEXT, name))

/* dlsym frees the text of an error that it has kept, by this function. The text may be what is freed in the first place, by
 * dlopen, and must not be freed twice: it stays, once in a process. glibc declares that dlsym calls nothing of the program,
 * so `looking` is volatile. */
__attribute__((noinline)) static void plain_free(void* address) {
    static __thread volatile int looking;
    if (looking) return;
    if (next_free == NULL) {
        looking = 1;
        OBASE_FIND_NEXT(next_free, "free");
        looking = 0;
    }
    if (next_free != NULL)
        next_free(address);
    else
        __libc_free(address);
}

__attribute__((noinline)) static void* plain_realloc(void* address, size_t bytes) {
    static __thread volatile int looking;
    if (next_realloc == NULL && !looking) {
        looking = 1;
        OBASE_FIND_NEXT(next_realloc, "realloc");
        looking = 0;
    }
    return next_realloc != NULL ? next_realloc(address, bytes) : __libc_realloc(address, bytes);
}

/* 0 of the text that dlsym frees. */
__attribute__((noinline)) static size_t plain_usable_size(void* address) {
    static __thread volatile int looking;
    if (next_usable_size == NULL && !looking) {
        looking = 1;
        OBASE_FIND_NEXT(next_usable_size, "malloc_usable_size");
        looking = 0;
    }
    return next_usable_size != NULL ? next_usable_size(address) : 0;
}

/* What obase frees while it looks is malloc's. */
static int owner_of(void* address) {
    if (in_obase) return 0;
    in_obase = 1;
    const int owner = obase_memory_owner(address, plain_usable_size);
    in_obase = 0;
    return owner;
}

__attribute__((weak, visibility("default"))) void free(void* address) {
    if (address == NULL) return;
    const int owner = owner_of(address);
    if (__builtin_expect(owner == 0, 1)) {
        if (__builtin_expect(next_free != NULL, 1))
            next_free(address);
        else
            plain_free(address);
        return;
    }
    const int error = errno;
    in_obase = 1;
    obase_memory_free(owner, address, __builtin_return_address(0));
    in_obase = 0;
    errno = error;
}

__attribute__((weak, visibility("default"))) void* realloc(void* address, size_t bytes) {
    const int owner = address == NULL ? 0 : owner_of(address);
    if (__builtin_expect(owner == 0, 1)) return plain_realloc(address, bytes);
    in_obase = 1;
    void* const fresh = obase_memory_realloc(owner, address, bytes, __builtin_return_address(0));
    in_obase = 0;
    return fresh;
}

__attribute__((weak, visibility("default"))) void* reallocarray(void* address, size_t count,
                                                                size_t bytes) {
    size_t all = 0;
    if (__builtin_mul_overflow(count, bytes, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(address, all);
}

__attribute__((weak, visibility("default"))) size_t malloc_usable_size(void* address) {
    if (address == NULL) return 0;
    const size_t managed = in_obase ? 0 : obase_memory_managed_size(address);
    return managed != 0 ? managed : plain_usable_size(address);
}
