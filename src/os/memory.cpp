// SPDX-License-Identifier: MIT
#include "os/memory.hpp"

#include "os/platform.hpp"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include <obase/word/atomic.hpp>

#ifndef MADV_COLD
#define MADV_COLD 20
#endif
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

namespace obase::os {
namespace {

int open_mode(const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); }

void* mmap_in_place(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
    return reinterpret_cast<void*>(
        ::syscall(SYS_mmap, at, bytes, protection, flags, fd, offset)); // MAP_FAILED is -1
}

void* remap(void* from, std::size_t bytes, std::size_t fresh, int flags, void* to) {
    return ::mremap(from, bytes, fresh, flags, to);
}

constexpr memory_calls real{
    ::mmap,      mmap_in_place, ::munmap,          ::mprotect,      ::madvise, ::fallocate,
    ::ftruncate, open_mode,     ::sync_file_range, ::posix_fadvise, remap,     ::mincore,
};

constinit word::native_atomic<const memory_calls*> current{&real};

// Callers' errno survives: obase runs inside allocation paths of programs that test errno later.
class errno_kept {
  public:
    errno_kept() noexcept : before_(errno) {}
    errno_kept(const errno_kept&) = delete;
    errno_kept& operator=(const errno_kept&) = delete;
    ~errno_kept() { errno = before_; }

  private:
    int before_;
};

template <class Call>
int result_of(Call&& call) noexcept {
    const errno_kept kept;
    for (;;) {
        if (call() == 0) return 0;
        if (errno != EINTR) return errno;
    }
}

// Which the C library of Debian 12 may not name.
constexpr int madv_collapse = 25;       // MADV_COLLAPSE
constexpr int madv_populate_read = 22;  // MADV_POPULATE_READ
constexpr int madv_guard_install = 102; // MADV_GUARD_INSTALL, Linux 6.13
constexpr int madv_guard_remove = 103;  // MADV_GUARD_REMOVE
constexpr int mremap_dontunmap = 4;     // MREMAP_DONTUNMAP, Linux 5.7

int to_madvise(advice what) noexcept {
    switch (what) {
    case advice::cold:
        return MADV_COLD;
    case advice::pageout:
        return MADV_PAGEOUT;
    case advice::hugepage:
        return MADV_HUGEPAGE;
    case advice::collapse:
        return madv_collapse;
    case advice::nohugepage:
        return MADV_NOHUGEPAGE;
    case advice::dontneed:
        return MADV_DONTNEED;
    case advice::willneed:
        return MADV_WILLNEED;
    case advice::random:
        return MADV_RANDOM;
    case advice::dontdump:
        return MADV_DONTDUMP;
    case advice::dontfork:
        return MADV_DONTFORK;
    case advice::populate:
        return madv_populate_read;
    }
    return MADV_NORMAL;
}

off_t to_off(std::uint64_t value) noexcept { return static_cast<off_t>(value); }

// A kernel without huge pages refuses, and needs not be told.
void keep_small_pages(void* begin, std::size_t bytes) noexcept {
    calls().madvise(begin, bytes, MADV_NOHUGEPAGE);
}

} // namespace

const memory_calls& real_memory_calls() noexcept { return real; }

const memory_calls& calls() noexcept { return *current.load_acquire(); }

void use_memory_calls(const memory_calls* replacement) noexcept {
    current.store_release(replacement == nullptr ? &real : replacement);
}

void* reserve(std::size_t bytes, std::size_t alignment) noexcept {
    const errno_kept kept;
    if (bytes > SIZE_MAX - alignment) return nullptr;
    const std::size_t padded = alignment > page_size ? bytes + alignment : bytes;
    void* const mapped = calls().mmap(nullptr, padded, PROT_NONE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    // Trim both ends so that what remains is aligned.
    char* const begin = static_cast<char*>(mapped);
    const auto address = reinterpret_cast<std::uintptr_t>(mapped);
    const std::size_t head = (alignment - (address & (alignment - 1))) & (alignment - 1);
    if (head != 0) calls().munmap(begin, head);
    if (padded - head > bytes) calls().munmap(begin + head + bytes, padded - head - bytes);
    keep_small_pages(begin + head, bytes);
    return begin + head;
}

int release(void* begin, std::size_t bytes) noexcept {
    return result_of([&] { return calls().munmap(begin, bytes); });
}

int commit(void* begin, std::size_t bytes) noexcept {
    return result_of([&] { return calls().mprotect(begin, bytes, PROT_READ | PROT_WRITE); });
}

int decommit(void* begin, std::size_t bytes) noexcept {
    const errno_kept kept;
    // A fresh PROT_NONE mapping in place drops pages and commit charge in one step.
    void* const mapped = calls().mmap(
        begin, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (mapped == MAP_FAILED) return errno;
    keep_small_pages(begin, bytes);
    return 0;
}

int advise(void* begin, std::size_t bytes, advice what) noexcept {
    return result_of([&] { return calls().madvise(begin, bytes, to_madvise(what)); });
}

int open_temporary_file(const char* directory, int* fd) noexcept {
    const errno_kept kept;
    do {
        *fd = calls().open(directory, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    } while (*fd < 0 && errno == EINTR);
    return *fd < 0 ? errno : 0;
}

void close_file(int fd) noexcept {
    const errno_kept kept;
    ::close(fd);
}

int grow_file(int fd, std::uint64_t bytes) noexcept {
    const errno_kept kept;
    struct stat now{};
    if (::fstat(fd, &now) != 0) return errno;
    if (static_cast<std::uint64_t>(now.st_size) >= bytes) return 0;
    // Beyond it the kernel sends SIGXFSZ, and threads of the program come here.
    rlimit most{};
    if (::getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY &&
        bytes > most.rlim_cur)
        return EFBIG;
    return result_of([&] { return calls().ftruncate(fd, to_off(bytes)); });
}

int allocate_file(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
    return result_of(
        [&] { return calls().fallocate(fd, FALLOC_FL_KEEP_SIZE, to_off(offset), to_off(bytes)); });
}

int punch_file(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
    return result_of([&] {
        return calls().fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, to_off(offset),
                                 to_off(bytes));
    });
}

int write_back_file(int fd, std::uint64_t offset, std::uint64_t bytes, bool wait) noexcept {
    const unsigned start = SYNC_FILE_RANGE_WRITE;
    const unsigned finish =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    return result_of([&] {
        return calls().sync_file_range(fd, to_off(offset), to_off(bytes), wait ? finish : start);
    });
}

int drop_file_cache(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
    const errno_kept kept;
    // posix_fadvise returns its error instead of setting errno.
    return calls().fadvise(fd, to_off(offset), to_off(bytes), POSIX_FADV_DONTNEED);
}

int map_file(void* begin, std::size_t bytes, int fd, std::uint64_t offset) noexcept {
    const errno_kept kept;
    void* const mapped = calls().mmap(begin, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                                      fd, to_off(offset));
    return mapped == MAP_FAILED ? errno : 0;
}

// Atomic for the other threads. mmap holds the lock of the address space for writing from before it
// clears the page table until the new mapping is in place, and flushes the other processors'
// translations before it lets go. So a store either used an old translation, which leads to the
// file's page, before the flush; or it faults, waits for the lock, and finds the private mapping,
// where its page is copied from the file's. A copy that misses a store would have to be made between
// the two, which the lock forbids. Only the kernel's own direct input and output (O_DIRECT) into
// pages it had looked up before goes past the page table, as it does around any fork.
//
// MAP_NORESERVE: pages that are never written need no commit charge.
int make_file_private(void* begin, std::size_t bytes, int fd, std::uint64_t offset) noexcept {
    const errno_kept kept;
    void* const mapped =
        calls().mmap_in_place(begin, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, fd, to_off(offset));
    return mapped == MAP_FAILED ? errno : 0;
}

namespace {
// mremap removes what was at its target before it does what can fail. Whether the range is reserved again: another
// thread's mapping may have come first.
void close_hole(void* begin, std::size_t bytes) noexcept {
    calls().mmap_in_place(begin, bytes, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}
} // namespace

int take_pages(void* from, void* to, std::size_t bytes) noexcept {
    const errno_kept kept;
    // From here on nothing is written there.
    if (calls().mprotect(from, bytes, PROT_NONE) != 0) return errno;
    if (calls().mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | mremap_dontunmap, to) ==
        MAP_FAILED) {
        const int error = errno;
        close_hole(to, bytes);
        native_platform::check(calls().mprotect(from, bytes, PROT_READ | PROT_WRITE) == 0,
                               "the kernel does not give the pages of objects back");
        return error;
    }
    if (calls().mprotect(to, bytes, PROT_READ | PROT_WRITE) != 0) {
        const int error = errno;
        // The way back: over the emptied pages, which nobody could use meanwhile.
        const bool back =
            calls().mremap(to, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, from) != MAP_FAILED;
        close_hole(to, bytes);
        native_platform::check(back && calls().mprotect(from, bytes, PROT_READ | PROT_WRITE) == 0,
                               "the kernel does not give the pages of objects back");
        return error;
    }
    // A mapping of its own for each such range would meet vm.max_map_count. With guards it becomes part of its
    // neighbours' mapping again.
    if (calls().madvise(from, bytes, madv_guard_install) == 0)
        calls().mprotect(from, bytes, PROT_READ | PROT_WRITE);
    return 0;
}

bool taken_pages_share_mappings() noexcept {
    const errno_kept kept;
    void* const page = reserve(page_size, page_size);
    if (page == nullptr) return false;
    const bool works = calls().madvise(page, page_size, madv_guard_install) == 0;
    release(page, page_size);
    return works;
}

int put_pages(void* from, void* to, std::size_t bytes) noexcept {
    const errno_kept kept;
    if (calls().mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED)
        return 0;
    const int error = errno;
    close_hole(to, bytes);
    return error;
}

int recommit_taken(void* begin, std::size_t bytes) noexcept {
    const errno_kept kept;
    // First the access: a guard that is gone must not leave something else than memory.
    if (calls().mprotect(begin, bytes, PROT_READ | PROT_WRITE) != 0) return errno;
    calls().madvise(begin, bytes, madv_guard_remove); // EINVAL: this kernel has none
    return 0;
}

} // namespace obase::os
