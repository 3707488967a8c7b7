// SPDX-License-Identifier: MIT
#include "os/own_memory.hpp"

#include "os/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace obase::os {

namespace {

std::uintptr_t read_hex(const char*& at) noexcept {
    std::uintptr_t value = 0;
    for (;; ++at) {
        if (*at >= '0' && *at <= '9')
            value = value * 16 + static_cast<std::uintptr_t>(*at - '0');
        else if (*at >= 'a' && *at <= 'f')
            value = value * 16 + static_cast<std::uintptr_t>(*at - 'a' + 10);
        else
            return value;
    }
}

// begin-end perms offset device inode   path
bool parse(char* line, own_mapping* out) noexcept {
    const char* at = line;
    out->begin = read_hex(at);
    if (*at++ != '-') return false;
    out->end = read_hex(at);
    if (std::strncmp(at, " rw-p ", 6) != 0) return false;
    at += 6;
    for (int column = 0; column < 3; ++column) {
        at = std::strchr(at, ' ');
        if (at == nullptr) {
            out->name = "";
            out->is_file = false;
            return true;
        }
        while (*at == ' ') ++at;
    }
    out->name = at;
    out->is_file = *at == '/';
    return true;
}

bool write_all(int fd, const char* text, std::size_t bytes) noexcept {
    while (bytes != 0) {
        const ssize_t written = write(fd, text, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        text += written;
        bytes -= static_cast<std::size_t>(written);
    }
    return true;
}

} // namespace

void for_each_writable_mapping(void (*visit)(void*, const own_mapping&), void* context) noexcept {
    const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    char buffer[8192];
    std::size_t used = 0;
    for (;;) {
        const ssize_t got = read(fd, buffer + used, sizeof buffer - 1 - used);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        used += static_cast<std::size_t>(got);
        char* line = buffer;
        char* end = nullptr;
        while ((end = static_cast<char*>(std::memchr(
                    line, '\n', used - static_cast<std::size_t>(line - buffer)))) != nullptr) {
            *end = '\0';
            own_mapping found{};
            if (parse(line, &found)) visit(context, found);
            line = end + 1;
        }
        used -= static_cast<std::size_t>(line - buffer);
        std::memmove(buffer, line, used);
        if (used == sizeof buffer - 1) used = 0; // a line longer than any path
    }
    close(fd);
}

std::size_t read_own_memory(std::uintptr_t from, void* to, std::size_t bytes) noexcept {
    const iovec local{to, bytes};
    const iovec remote{reinterpret_cast<void*>(from), bytes};
    const ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    return got > 0 ? static_cast<std::size_t>(got) : 0;
}

page_states::page_states() noexcept : fd_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}
page_states::~page_states() {
    if (fd_ >= 0) close(fd_);
}

std::uintptr_t page_states::first_touched(std::uintptr_t begin, std::uintptr_t end) noexcept {
    constexpr std::uint64_t present_or_swapped = std::uint64_t{3} << 62;
    for (std::uintptr_t at = begin; at < end;) {
        const std::uintptr_t page = at / page_size;
        if (page - first_page_ >= known_) {
            const ssize_t got = fd_ < 0 ? -1
                                        : pread(fd_, states_, sizeof states_,
                                                static_cast<off_t>(page * sizeof *states_));
            if (got < static_cast<ssize_t>(sizeof *states_)) return at;
            first_page_ = page;
            known_ = static_cast<std::size_t>(got) / sizeof *states_;
        }
        if ((states_[page - first_page_] & present_or_swapped) != 0) return at;
        at = (page + 1) * page_size;
    }
    return end;
}

bool map_for_reading(const char* path, mapped_file* file) noexcept {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    struct stat about{};
    void* memory = MAP_FAILED;
    if (fstat(fd, &about) == 0 && about.st_size > 0)
        memory =
            mmap(nullptr, static_cast<std::size_t>(about.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (memory == MAP_FAILED) return false;
    *file = {static_cast<const char*>(memory), static_cast<std::size_t>(about.st_size)};
    return true;
}

void unmap(const mapped_file& file) noexcept {
    if (file.begin != nullptr) munmap(const_cast<char*>(file.begin), file.bytes);
}

int unmap_for_program(void* begin, std::size_t bytes) noexcept { return munmap(begin, bytes); }

bool write_file(const char* path, const char* text, std::size_t bytes) noexcept {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return false;
    const bool whole = write_all(fd, text, bytes);
    return close(fd) == 0 && whole;
}

void write_to_standard_error(const char* text, std::size_t bytes) noexcept {
    write_all(STDERR_FILENO, text, bytes);
}

} // namespace obase::os
