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

// The number in a limit file; UINT64_MAX for "max", for v1's "no limit" and when unreadable.
std::uint64_t read_limit(const char* directory, const char* name) noexcept {
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

// A limit binds the group and everything below it, so the smallest on the way to the root counts.
void take_path(const char* root, const char* group, bool unified,
               container_limits& limits) noexcept {
    char directory[path_bytes];
    if (std::snprintf(directory, sizeof directory, "%s%s", root, group) >=
        static_cast<int>(sizeof directory)) {
        return;
    }
    const std::size_t root_length = std::strlen(root);
    while (true) {
        limits.memory_bytes =
            std::min(limits.memory_bytes,
                     read_limit(directory, unified ? "memory.max" : "memory.limit_in_bytes"));
        if (unified) {
            limits.swap_bytes =
                std::min(limits.swap_bytes, read_limit(directory, "memory.swap.max"));
        }
        char* slash = std::strrchr(directory, '/');
        if (slash == nullptr || static_cast<std::size_t>(slash - directory) < root_length) return;
        *slash = '\0';
    }
}

} // namespace

container_limits read_container_limits() noexcept {
    const int before = errno;
    container_limits limits;
    if (std::FILE* file = std::fopen("/proc/self/cgroup", "re")) {
        char line[path_bytes];
        while (std::fgets(line, sizeof line, file) != nullptr) {
            line[std::strcspn(line, "\n")] = '\0';
            // hierarchy:controllers:path
            char* controllers = std::strchr(line, ':');
            if (controllers == nullptr) continue;
            char* group = std::strchr(++controllers, ':');
            if (group == nullptr) continue;
            *group++ = '\0';
            if (*controllers == '\0') {
                take_path("/sys/fs/cgroup", group, true, limits);
                take_path("/sys/fs/cgroup/unified", group, true, limits);
            } else if (std::strcmp(controllers, "memory") == 0) {
                take_path("/sys/fs/cgroup/memory", group, false, limits);
            }
        }
        std::fclose(file);
    }
    errno = before;
    return limits;
}

} // namespace obase::os
