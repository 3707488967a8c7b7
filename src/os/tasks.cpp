// SPDX-License-Identifier: MIT
#include "os/tasks.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace obase::os {

namespace {

constexpr unsigned long kernel_made = 0x4010; // PF_USER_WORKER, PF_IO_WORKER
constexpr unsigned long ending = 0x4;         // PF_EXITING: it runs no more of the program

// getdents64
struct entry {
    std::uint64_t inode;
    std::int64_t offset;
    std::uint16_t length;
    std::uint8_t type;
    char name[1];
};

// Of a file, ended by a zero; the length, 0: there is none, and errno says why.
std::size_t read_file(const char* path, char* to, std::size_t room) noexcept {
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    const ssize_t got = ::read(fd, to, room - 1);
    ::close(fd);
    const std::size_t length = got > 0 ? static_cast<std::size_t>(got) : 0;
    to[length] = 0;
    return length;
}

std::size_t read_of(std::uint32_t thread, const char* file, char* to, std::size_t room) noexcept {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%u/%s", thread, file);
    return read_file(path, to, room);
}

bool runs_nothing_of_the_program(std::uint32_t thread) noexcept {
    char text[512];
    if (read_of(thread, "stat", text, sizeof text) == 0)
        return errno == ENOENT || errno == ESRCH; // it has ended; else there is no descriptor
    const char* at = std::strrchr(text, ')');
    // Behind it: state, ppid, pgrp, session, tty, tpgid, flags.
    for (int fields = 0; at != nullptr && fields < 7; ++fields) at = std::strchr(at + 1, ' ');
    return at != nullptr && (std::strtoul(at + 1, nullptr, 10) & (kernel_made | ending)) != 0;
}

bool ran_for_long(std::uint32_t thread) noexcept {
    constexpr unsigned long long longest_start = 10'000'000; // ns of processor time
    char text[128];
    return read_of(thread, "schedstat", text, sizeof text) != 0 &&
           std::strtoull(text, nullptr, 10) > longest_start;
}

bool announced_by_library(std::uint32_t thread) noexcept {
    void* head = nullptr;
    std::size_t bytes = 0;
    return syscall(SYS_get_robust_list, static_cast<pid_t>(thread), &head, &bytes) != 0 ||
           head != nullptr;
}

} // namespace

std::uint32_t thread_without_library(bool* has_run) noexcept {
    *has_run = false;
    const int fd = ::open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) // without /proc nothing is said; without a descriptor it may be said later
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? UINT32_MAX : 0;
    std::uint32_t found = 0;
    alignas(entry) char buffer[4096];
    for (;;) {
        const long got = syscall(SYS_getdents64, fd, buffer, sizeof buffer);
        if (got <= 0) break;
        for (long at = 0; at < got;) {
            const auto* const each = reinterpret_cast<const entry*>(buffer + at);
            at += each->length;
            const auto thread = static_cast<std::uint32_t>(std::strtoul(each->name, nullptr, 10));
            if (thread == 0 || announced_by_library(thread) || runs_nothing_of_the_program(thread))
                continue;
            found = thread;
            *has_run = *has_run || ran_for_long(thread);
        }
    }
    ::close(fd);
    return found;
}

std::uint32_t thread_count() noexcept {
    struct stat about{};
    if (::stat("/proc/self/task", &about) != 0 || about.st_nlink < 2) return 0;
    return static_cast<std::uint32_t>(about.st_nlink - 2); // a folder for each
}

std::uint64_t first_thread_waited_ns() noexcept {
    char text[96];
    if (read_file("/proc/self/schedstat", text, sizeof text) == 0) return 0;
    unsigned long long ran = 0, waited = 0;
    return std::sscanf(text, "%llu %llu", &ran, &waited) == 2 ? waited : 0;
}

} // namespace obase::os
