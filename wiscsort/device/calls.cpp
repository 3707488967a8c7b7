// SPDX-License-Identifier: MIT
#include "wiscsort/device/calls.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>

namespace wiscsort::device {

namespace {

std::atomic<fault_hook> hook{nullptr};

// One call never moves more: the kernel's own limit is just below 2 GiB.
constexpr std::size_t most_per_call = 1U << 30;

// Makes the call until it is not interrupted. Its result, or -1 with errno.
template <class Call>
long uninterrupted(const char* name, Call call) {
    for (;;) {
        const fault injected = before_call(name);
        if (injected.error == 0) {
            const long result = call(injected.shorten);
            if (result >= 0 || errno != EINTR) return result;
        } else if (injected.error != EINTR) {
            errno = injected.error;
            return -1;
        }
    }
}

template <class Call>
int outcome(const char* name, Call call) {
    return uninterrupted(name, [&](bool) -> long { return call(); }) < 0 ? errno : 0;
}

std::size_t part(std::size_t size, bool shorten) {
    size = std::min(size, most_per_call);
    return shorten ? std::max<std::size_t>(1, size / 2) : size;
}

} // namespace

void set_fault_hook(fault_hook asked) { hook.store(asked); }

fault before_call(const char* call) {
    const fault_hook asked = hook.load();
    return asked == nullptr ? fault{} : asked(call);
}

void descriptor::reset() {
    // Nothing was promised about what the kernel still holds back: who needs that has called sync.
    if (number_ >= 0) ::close(number_);
    number_ = -1;
}

int open_file(const char* path, int flags, mode_t mode, descriptor& out) {
    const char* const name = (flags & O_TMPFILE) == O_TMPFILE ? "open unnamed" : "open";
    const long fd =
        uninterrupted(name, [&](bool) -> long { return ::open(path, flags | O_CLOEXEC, mode); });
    if (fd < 0) return errno;
    out = descriptor(static_cast<int>(fd));
    return 0;
}

int status(int fd, struct stat& out) {
    return outcome("fstat", [&] { return ::fstat(fd, &out); });
}

std::int64_t read_at(int fd, void* to, std::size_t size, std::uint64_t offset) {
    std::size_t done = 0;
    while (done < size) {
        const long got = uninterrupted("pread", [&](bool shorten) -> long {
            return ::pread(fd, static_cast<char*>(to) + done, part(size - done, shorten),
                           static_cast<off_t>(offset + done));
        });
        if (got < 0) return -errno;
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    return static_cast<std::int64_t>(done);
}

std::int64_t read_some(int fd, void* to, std::size_t size) {
    const long got = uninterrupted(
        "read", [&](bool shorten) -> long { return ::read(fd, to, part(size, shorten)); });
    return got < 0 ? -errno : got;
}

int write_at(int fd, const void* from, std::size_t size, std::uint64_t offset) {
    std::size_t done = 0;
    while (done < size) {
        const long put = uninterrupted("pwrite", [&](bool shorten) -> long {
            return ::pwrite(fd, static_cast<const char*>(from) + done, part(size - done, shorten),
                            static_cast<off_t>(offset + done));
        });
        if (put < 0) return errno;
        if (put == 0) return EIO;
        done += static_cast<std::size_t>(put);
    }
    return 0;
}

int write_stream(int fd, const void* from, std::size_t size) {
    std::size_t done = 0;
    while (done < size) {
        const long put = uninterrupted("write", [&](bool shorten) -> long {
            return ::write(fd, static_cast<const char*>(from) + done, part(size - done, shorten));
        });
        if (put < 0) return errno;
        if (put == 0) return EIO;
        done += static_cast<std::size_t>(put);
    }
    return 0;
}

int allocate(int fd, std::uint64_t offset, std::uint64_t size) {
    if (size == 0) return 0;
    return outcome("fallocate", [&] {
        return ::fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(size));
    });
}

int resize(int fd, std::uint64_t size) {
    return outcome("ftruncate", [&] { return ::ftruncate(fd, static_cast<off_t>(size)); });
}

int sync_data(int fd) {
    return outcome("fdatasync", [&] { return ::fdatasync(fd); });
}

int sync_all(int fd) {
    return outcome("fsync", [&] { return ::fsync(fd); });
}

int link_descriptor(int fd, int directory, const char* name) {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return outcome("linkat",
                   [&] { return ::linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW); });
}

int rename_in(int directory, const char* from, const char* to) {
    return outcome("renameat", [&] { return ::renameat(directory, from, directory, to); });
}

int unlink_in(int directory, const char* name) {
    return outcome("unlinkat", [&] { return ::unlinkat(directory, name, 0); });
}

void* map(void* address, std::size_t size, int protection, int flags, int fd,
          std::uint64_t offset) {
    const fault injected = before_call("mmap");
    if (injected.error != 0 && injected.error != EINTR) {
        errno = injected.error;
        return MAP_FAILED;
    }
    return ::mmap(address, size, protection, flags, fd, static_cast<off_t>(offset));
}

void unmap(void* address, std::size_t size) {
    if (address != nullptr && size != 0) ::munmap(address, size);
}

} // namespace wiscsort::device
