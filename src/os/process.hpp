// SPDX-License-Identifier: MIT
//
// What the kernel says about this process and this machine.
//
// Readings of /proc, /sys and limits, each as a struct filled in one go. A field that could not be
// read keeps its default, and the function says so by its result. Not for hot paths: each call
// opens files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace obase::os {

struct process_memory { // bytes
    std::uint64_t rss = 0;
    std::uint64_t pss = 0;
    std::uint64_t swap = 0;
    std::uint64_t anonymous = 0;
    std::uint64_t anon_huge = 0;
};
// From /proc/self/smaps_rollup; when that is missing only rss, from /proc/self/statm. False:
// neither.
bool read_process_memory(process_memory* out) noexcept;

// Resident bytes alone, from /proc/self/statm: cheap. 0 when unreadable.
std::uint64_t resident_bytes() noexcept;

// Bytes in swap, from /proc/self/status. 0 when unreadable.
std::uint64_t swapped_bytes() noexcept;

// The most resident bytes that the process has had so far (VmHWM). 0 when unreadable.
std::uint64_t peak_resident_bytes() noexcept;

// Resident bytes among [begin, begin+bytes), by mincore: includes pages of files that are cached.
// Preconditions as in memory.hpp; 0 when the range is not mapped.
std::uint64_t resident_in(const void* begin, std::size_t bytes) noexcept;

// Of each of the `pages` from `begin` on: seen[i] & 1 is whether it is resident, as above. False: the range is not mapped.
bool read_residency(const void* begin, std::size_t pages, unsigned char* seen) noexcept;

// True if all pages of [begin, begin+bytes) are resident; false, too, where more than 64 would have to be asked about.
bool all_resident(const void* begin, std::size_t bytes) noexcept;

struct machine {
    std::uint64_t ram_bytes = 0;
    std::uint64_t swap_total = 0; // bytes; 0: pageout of anonymous memory frees nothing
    std::uint64_t swap_free = 0;
    bool zram_swap = false;    // swap lies in compressed memory
    int overcommit_memory = 0; // vm.overcommit_memory: 0 heuristic, 1 always, 2 never
    std::uint64_t max_map_count = 65530;
    bool transparent_huge_pages = false; // "always" or "madvise"
};
// False: /proc/meminfo was not readable.
bool read_machine(machine* out) noexcept;

// Soft RLIMIT_AS in bytes; UINT64_MAX when unlimited.
std::uint64_t address_space_limit() noexcept;

// True when MADV_PAGEOUT of anonymous memory can free anything here: swap exists with room left.
bool can_page_out(const machine& here) noexcept;

} // namespace obase::os
