// SPDX-License-Identifier: MIT
#include "os/container.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace obase::os {

namespace {

constexpr std::size_t path_bytes = 4096;

// The number in a file of a group; UINT64_MAX for "max", for v1's "no limit" and when unreadable.
std::uint64_t read_number(const char* directory, const char* name) noexcept {
    char path[path_bytes + 64];
    std::snprintf(path, sizeof path, "%s/%s", directory, name);
    std::FILE* file = std::fopen(path, "re");
    if (file == nullptr) return UINT64_MAX;
    char text[32] = "";
    const bool got = std::fgets(text, sizeof text, file) != nullptr;
    std::fclose(file);
    if (!got || text[0] < '0' || text[0] > '9') return UINT64_MAX;
    const std::uint64_t value = std::strtoull(text, nullptr, 10);
    constexpr std::uint64_t v1_no_limit = UINT64_MAX >> 2; // 2^63 rounded down to a page, or less
    return value >= v1_no_limit ? UINT64_MAX : value;
}

std::uint64_t hard_limit(const char* directory, bool unified) noexcept {
    return read_number(directory, unified ? "memory.max" : "memory.limit_in_bytes");
}

// visit(directory) for the group and all above it.
template <class Visit>
void each_level(const char* mount, const char* below, const char* group, Visit&& visit) noexcept {
    char directory[path_bytes];
    const int root = std::snprintf(directory, sizeof directory, "%s%s", mount, below);
    if (root < 0 || std::snprintf(directory, sizeof directory, "%s%s%s", mount, below, group) >=
                        static_cast<int>(sizeof directory))
        return;
    while (true) {
        visit(static_cast<const char*>(directory));
        char* slash = std::strrchr(directory, '/');
        if (slash == nullptr || slash - directory < root) return;
        *slash = '\0';
    }
}

// visit(directory, unified) for the groups of the memory controller that the list names.
template <class Visit>
void each_group(const char* groups_file, const char* mount, Visit&& visit) noexcept {
    std::FILE* file = std::fopen(groups_file, "re");
    if (file == nullptr) return;
    char line[path_bytes];
    while (std::fgets(line, sizeof line, file) != nullptr) {
        line[std::strcspn(line, "\n")] = '\0';
        // hierarchy:controllers:path
        char* controllers = std::strchr(line, ':');
        if (controllers == nullptr) continue;
        char* group = std::strchr(++controllers, ':');
        if (group == nullptr) continue;
        *group++ = '\0';
        const auto unified = [&](const char* directory) { visit(directory, true); };
        if (*controllers == '\0') {
            each_level(mount, "", group, unified);
            each_level(mount, "/unified", group, unified);
        } else if (std::strcmp(controllers, "memory") == 0) {
            each_level(mount, "/memory", group,
                       [&](const char* directory) { visit(directory, false); });
        }
    }
    std::fclose(file);
}

// Of pages of files, those that need not be written first.
std::uint64_t clean_file_bytes(const char* directory, bool unified) noexcept {
    char path[path_bytes + 64];
    std::snprintf(path, sizeof path, "%s/memory.stat", directory);
    std::FILE* file = std::fopen(path, "re");
    if (file == nullptr) return 0;
    std::uint64_t cache = 0, kept = 0;
    char name[64];
    unsigned long long value = 0;
    while (std::fscanf(file, "%63s %llu", name, &value) == 2) {
        const auto is = [&](const char* v2, const char* v1) {
            return std::strcmp(name, unified ? v2 : v1) == 0;
        };
        if (is("file", "total_cache")) cache = value;
        if (is("shmem", "total_shmem") || is("file_dirty", "total_dirty") ||
            is("file_writeback", "total_writeback"))
            kept += value;
    }
    std::fclose(file);
    return cache > kept ? cache - kept : 0;
}

} // namespace

// A limit binds the group and everything below it, so the smallest on the way to the root counts.
container_limits read_container_limits() noexcept {
    const int before = errno;
    container_limits limits;
    each_group("/proc/self/cgroup", "/sys/fs/cgroup", [&](const char* directory, bool unified) {
        limits.memory_bytes = std::min(limits.memory_bytes, hard_limit(directory, unified));
        if (unified)
            limits.swap_bytes =
                std::min(limits.swap_bytes, read_number(directory, "memory.swap.max"));
    });
    errno = before;
    return limits;
}

container_memory read_container_memory(const char* groups_file, const char* mount) noexcept {
    const int before = errno;
    container_memory least;
    double least_room = 0;
    each_group(groups_file, mount, [&](const char* directory, bool unified) {
        container_memory here;
        here.limit_bytes = hard_limit(directory, unified);
        if (unified)
            here.limit_bytes = std::min(here.limit_bytes, read_number(directory, "memory.high"));
        if (here.limit_bytes == UINT64_MAX) return;
        here.charged_bytes =
            read_number(directory, unified ? "memory.current" : "memory.usage_in_bytes");
        if (here.charged_bytes == UINT64_MAX) return;
        here.charged_bytes -= std::min(here.charged_bytes, clean_file_bytes(directory, unified));
        const double room =
            static_cast<double>(here.limit_bytes) - static_cast<double>(here.charged_bytes);
        if (least.limit_bytes != UINT64_MAX && room >= least_room) return;
        least = here;
        least_room = room;
    });
    errno = before;
    return least;
}

container_memory read_container_memory() noexcept {
    return read_container_memory("/proc/self/cgroup", "/sys/fs/cgroup");
}

} // namespace obase::os
