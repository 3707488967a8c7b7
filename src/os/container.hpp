// SPDX-License-Identifier: MIT
//
// What the process's control group allows: memory and swap.
//
// One reading of cgroup v2 (memory.max, memory.swap.max, up to the root) or, where the memory
// controller is still on v1, of memory.limit_in_bytes. A group that cannot be read limits nothing.
// Opens files; for start-up, not for every window.
#pragma once

#include <cstdint>

namespace obase::os {

struct container_limits {
    std::uint64_t memory_bytes = UINT64_MAX; // UINT64_MAX: no limit
    std::uint64_t swap_bytes = UINT64_MAX;   // swap alone; 0: nothing can be paged out to swap
};

container_limits read_container_limits() noexcept;

} // namespace obase::os
