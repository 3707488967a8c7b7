// SPDX-License-Identifier: MIT
//
// Memory and files of the operating system: reserve, commit, advise, allocate file space.
//
// The only place in obase that maps memory. Every call returns 0 or an errno value, throws nothing
// and keeps errno as it was. Addresses and lengths must be multiples of page_size and the length
// positive, unless said otherwise. Any thread may call; none takes a lock of obase.
//
// A test puts its own `memory_calls` in place to make a call fail (ENOMEM, ENOSPC, EIO).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace obase::os {

inline constexpr std::size_t page_size = 4096; // x86-64 Linux; "OS page" everywhere in obase

// The system calls beneath, with their own signatures and errno. A fake may wrap any of them.
struct memory_calls {
    void* (*mmap)(void*, std::size_t, int, int, int, off_t);
    // mmap over memory in use whose contents stay. Past the sanitizers, which take every mapping for
    // new memory that this thread has written.
    void* (*mmap_in_place)(void*, std::size_t, int, int, int, off_t);
    int (*munmap)(void*, std::size_t);
    int (*mprotect)(void*, std::size_t, int);
    int (*madvise)(void*, std::size_t, int);
    int (*fallocate)(int, int, off_t, off_t);
    int (*ftruncate)(int, off_t);
    int (*open)(const char*, int, mode_t);
    int (*sync_file_range)(int, off_t, off_t, unsigned);
    int (*fadvise)(int, off_t, off_t, int);
    void* (*mremap)(void*, std::size_t, std::size_t, int, void*);
    int (*mincore)(void*, std::size_t, unsigned char*);
};

const memory_calls& real_memory_calls() noexcept;

// Those in use.
const memory_calls& calls() noexcept;

// Replaces the calls; nullptr puts the real ones back. Tests only; `calls` must outlive its use.
void use_memory_calls(const memory_calls* calls) noexcept;

// Address space without memory: PROT_NONE, not charged against overcommit. `alignment` is a power
// of two >= page_size. nullptr: no room (RLIMIT_AS, vm.max_map_count).
//
// Its pages stay small where the machine makes all memory huge pages (transparent_hugepage/enabled is `always`),
// unless advice::hugepage is given: tables are sparse, and what is returned of a huge page stays charged until the
// kernel splits it.
void* reserve(std::size_t bytes, std::size_t alignment) noexcept;
// Gives back reserved (also committed) address space.
int release(void* begin, std::size_t bytes) noexcept;
// Makes reserved pages readable and writable. ENOMEM: commit limit or map count reached; unchanged.
int commit(void* begin, std::size_t bytes) noexcept;
// Drops the contents and makes the pages inaccessible again; the reservation stays.
int decommit(void* begin, std::size_t bytes) noexcept;

enum class advice : std::uint8_t {
    cold,
    pageout,
    hugepage,
    collapse, // into huge pages at once, whole 2 MiB units; Linux 6.1
    nohugepage,
    dontneed,
    willneed,
    random,   // no read-ahead
    dontfork, // a child of a fork does not get the mapping
    dontdump, // a core dump does not have it
    populate  // brings the pages in, as reading them would; Linux 5.14
};
// madvise. `dontneed` on private anonymous memory frees the pages; they read as zero afterwards.
int advise(void* begin, std::size_t bytes, advice what) noexcept;

// An unnamed file in `directory`, mode 0600, that no other process can open or link
// (O_TMPFILE|O_EXCL), closed on exec. On success *fd is its descriptor.
int open_temporary_file(const char* directory, int* fd) noexcept;
void close_file(int fd) noexcept;
// Grows the file to at least `bytes`. Never shrinks: a shrunk mapping would raise SIGBUS.
int grow_file(int fd, std::uint64_t bytes) noexcept;
// Makes sure that [offset, offset+bytes) has storage, inside the file's size. ENOSPC: disk full.
int allocate_file(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept;
// Frees the storage of [offset, offset+bytes); size unchanged, contents read as zero.
int punch_file(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept;
// Starts (and, with `wait`, finishes) writing dirty pages to storage; with no bytes all from `offset` on. EIO is the
// disk's.
int write_back_file(int fd, std::uint64_t offset, std::uint64_t bytes, bool wait) noexcept;
// Asks the kernel to drop clean cached pages of the range.
int drop_file_cache(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept;
// Maps file pages, shared, readable and writable, over reserved address space at `begin`.
int map_file(void* begin, std::size_t bytes, int fd, std::uint64_t offset) noexcept;
// Turns a shared mapping of file pages, as map_file made it, into a private one of the same pages, in
// one step for every thread: what was written before is in the file, what is written afterwards in
// pages of this process alone. Precondition: no other mapping of the range was ever private.
// ENOMEM: map count or commit limit reached; unchanged.
int make_file_private(void* begin, std::size_t bytes, int fd, std::uint64_t offset) noexcept;

// Gives anonymous pages in use the addresses from `to` on, reserved ones. `from` is inaccessible from one moment on, for
// this process and for system calls; what was written before it is at `to`. It stays reserved, and holds no memory.
// On failure the pages are at `from` as they were, but `to` need not be reserved any more: mremap may have removed what
// was there, and another thread's mapping may have come. Where the kernel refuses the way back, too, the process ends,
// with a message. What the program itself asked for such pages (mlock, mprotect, madvise) is lost. Linux 5.7. Of pages that the kernel has pinned for direct I/O the contents may still
// change.
int take_pages(void* from, void* to, std::size_t bytes) noexcept;
// True where a range whose pages were taken needs no mapping of its own: guard pages, Linux 6.13.
bool taken_pages_share_mappings() noexcept;
// The pages at `from`, committed, appear at `to`, in one step, in place of what was there. `from` is unmapped.
// On failure `from` is as it was, and `to` inaccessible, and as after a failure of take_pages().
int put_pages(void* from, void* to, std::size_t bytes) noexcept;
// Pages whose contents take_pages() has taken are accessible again, and empty.
int recommit_taken(void* begin, std::size_t bytes) noexcept;

} // namespace obase::os
