// SPDX-License-Identifier: MIT
//
// What the process's control group allows: memory and swap; and what it is charged for.
//
// One reading of cgroup v2 or, where the memory controller is still on v1, of that, up to the root. A group
// that cannot be read limits nothing. Opens a few files for each level of the hierarchy: at most once per window.
#pragma once

#include <cstdint>

namespace obase::os {

// By memory.max (v1: memory.limit_in_bytes) and memory.swap.max.
struct container_limits {
    std::uint64_t memory_bytes = UINT64_MAX; // UINT64_MAX: no limit
    std::uint64_t swap_bytes = UINT64_MAX;   // swap alone; 0: nothing can be paged out to swap
};

container_limits read_container_limits() noexcept;

// Of the groups that have a limit (of v2 memory.high is one, too), on the way to the root, the one with the
// least room.
struct container_memory {
    std::uint64_t limit_bytes = UINT64_MAX; // UINT64_MAX: none has one
    // What the kernel cannot drop for nothing: all but clean pages of files.
    std::uint64_t charged_bytes = 0;
};

container_memory read_container_memory() noexcept;
// For tests: the list of groups, and where their hierarchies are mounted, are elsewhere.
container_memory read_container_memory(const char* groups_file, const char* mount) noexcept;

} // namespace obase::os
